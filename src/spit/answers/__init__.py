"""Questions to ask of images: each is a dataclass of options with one implementation, which every door calls."""

from spit.lazy import lazily

__getattr__ = lazily(__name__, {
    "classify": ["Classify", "RankedClass"],
    "explain": ["Explain", "explain"],
    "question": ["Question"],
    "segment": ["Segment", "segment"],
})
