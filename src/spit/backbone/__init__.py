"""f, the backbone: attention blocks over packed tokens, without padding (§2.1, Eq. 1)."""

from spit.backbone.attention import Attention, Heads, attention_maps, ragged_attention
from spit.backbone.block import Block
from spit.backbone.merging import MergingTransformer
from spit.backbone.recorder import Record, Recorder
from spit.backbone.spans import Spans
from spit.backbone.transformer import Transformer, TransformerOptions
from spit.parts import BACKBONES

__all__ = [
    "Attention", "Block", "Heads", "MergingTransformer", "Record", "Recorder", "Spans", "Transformer",
    "TransformerOptions", "attention_maps", "ragged_attention",
]

BACKBONES.register("transformer", Transformer)
BACKBONES.register("merging", MergingTransformer)
