"""Masks and correspondences from tokens, without a decoder or pixel post-processing (§3.2, App. E and F)."""

from spit.lazy import lazily

__getattr__ = lazily(__name__, {
    "cleaning": ["clean", "decide"],
    "correspondence": ["Correspondence", "correspond"],
    "graph": ["RegionGraph"],
    "head": ["TokenHead", "load_head"],
    "options": ["TokenCut"],
    "saliency": ["Segmentation"],
})
