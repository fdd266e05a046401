"""f: a stack of attention blocks and the final norm."""

from collections.abc import Iterable
from typing import cast

from torch import Tensor, nn

from spit.backbone.block import Block
from spit.backbone.recorder import Recorder
from spit.backbone.spans import Spans
from spit.tokens import Tokens


class Transformer(nn.Module):
    """The backbone f of ``Φ = h ∘ f ∘ γ ∘ φ ∘ τ`` (§2.1, Eq. 1).

    The final LayerNorm belongs to f, so that what leaves it is what h, attribution and segmentation
    all read.

    Args:
        width: D.
        depth: blocks.
        heads, mlp_ratio, qkv_bias, layer_scale: see :class:`~spit.backbone.block.Block`.
        drop_path: rate of stochastic depth in the last block; from 0 in the first it grows linearly.

    Shape:
        Tokens ``(ΣN, D)`` to Tokens ``(ΣN, D)``.
    """

    def __init__(self, width: int, depth: int, heads: int, mlp_ratio: float = 4.0, qkv_bias: bool = False,
                 layer_scale: float | None = 1e-5, drop_path: float = 0.0) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            Block(width, heads, mlp_ratio, qkv_bias, layer_scale, drop_path * index / max(depth - 1, 1))
            for index in range(depth)
        )
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.apply(initialize)

    def forward(self, tokens: Tokens, recorder: Recorder | None = None) -> Tokens:
        """Run the blocks.

        Args:
            tokens: with the class token first in every image.
            recorder: filled with what it wants; it changes nothing else, to the last bit.
        """
        spans = Spans.of(tokens.offsets)
        values: Tensor = tokens.values
        for layer, block in enumerate(cast(Iterable[Block], self.blocks)):
            if recorder is not None and recorder.wants("attention", layer):
                recorder.attention[layer] = block.attention_maps(values, spans)
            values = block(values, spans)
            if recorder is not None and recorder.wants("features", layer):
                recorder.features[layer] = tokens.replace(values)
        return tokens.replace(self.norm(values))


def initialize(module: nn.Module) -> None:
    """Begin a linear layer as ViT does: truncated normal weights, σ = 0.02, and zero biases."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
