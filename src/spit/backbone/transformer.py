"""f: a stack of attention blocks and the final norm."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spit.backbone.block import Block
from spit.backbone.linear import round_rows
from spit.backbone.recorder import Recorder
from spit.backbone.spans import Spans
from spit.options import Options, option
from spit.tokens import Tokens


@dataclass(frozen=True)
class TransformerOptions(Options):
    """The options of f, shared by :class:`Transformer` and :class:`spit.ModelConfig`."""

    width: int = option(192, "Columns D of a token", least=1, most=2**16)
    depth: int = option(12, "Attention blocks", least=1, most=1024)
    heads: int = option(3, "Attention heads of a block", least=1)
    mlp_ratio: float = option(4.0, "Inner width of a block's MLP over D", above=0, most=1024)
    qkv_bias: bool = option(False, "Whether queries, keys and values have a bias: DeiT's do, SPiT's do not")
    layer_scale: float | None = option(1e-5, "Initial LayerScale; none for no scales", least=0, most=1000)
    drop_path: float = option(
        0.0, "Stochastic depth of the last block; it grows linearly from 0 in the first, as timm's drop_path_rate",
        least=0, below=1)
    drop_path_uniform: bool = option(False, "Use drop_path in every block, as the authors' release does")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise ValueError(f"expected a width that heads divide, got width={self.width} and heads={self.heads}")
        if round(self.width * self.mlp_ratio) < 1:
            raise ValueError(f"expected an MLP of at least one column, got width={self.width} and "
                             f"mlp_ratio={self.mlp_ratio}")


class Transformer(nn.Module):
    """The backbone f of ``Φ = h ∘ f ∘ γ ∘ φ ∘ τ`` (§2.1, Eq. 1).

    The final LayerNorm belongs to f, so that h, attribution and segmentation all read the same tokens.

    Args:
        options: see :class:`TransformerOptions`.

    Shape:
        Tokens ``(ΣN, D)`` to Tokens ``(ΣN, D)``.
    """

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            Block(options.width, options.heads, options.mlp_ratio, options.qkv_bias, options.layer_scale,
                  options.drop_path * (1 if options.drop_path_uniform else index / max(options.depth - 1, 1)))
            for index in range(options.depth)
        )
        self.norm = nn.LayerNorm(options.width, eps=1e-6)
        self.checkpointing = False  # recompute each block in the backward pass instead of keeping its activations
        self.apply(initialize)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles are not compiled: :mod:`spit.compiled` puts its own ``forward`` on a module."""
        return {name: value for name, value in super().__getstate__().items()  # type: ignore[no-untyped-call]
                if name != "forward"}

    def forward(self, tokens: Tokens, recorder: Recorder | None = None, first: bool = False) -> Tokens:
        """Run the blocks.

        Args:
            tokens: with the class token first in every image.
            recorder: filled with what it asks for; the result is the same to the last bit.
            first: return the first row of each image alone, the class tokens, which are all that h reads. In inference
                the last block then computes nothing else.
        """
        spans = Spans.of(tokens)
        if first and not recorder and self._answers():
            return Tokens.one_each(self.run_first(tokens.values, spans))
        answer = tokens.replace(self.run_blocks(tokens.values, spans, recorder))
        return Tokens.one_each(answer.first) if first else answer

    def run_blocks(self, values: Tensor, spans: Spans, recorder: Recorder | None = None) -> Tensor:
        """All blocks and the final norm on packed rows, ``(ΣN, D)`` to ``(ΣN, D)``."""
        rows, values = len(values), values if self.training else round_rows(values)
        for layer, block in enumerate(cast(Iterable[Block], self.blocks)):
            observe = None if recorder is None else recorder.observer(layer, spans)
            if self.checkpointing and self.training and torch.is_grad_enabled() and observe is None:
                values = cast(Tensor, checkpoint(block, values, spans, use_reentrant=False))
            else:
                given, values = values, block(values, spans, observe)
                if layer == len(self.blocks) - 1 and self._answers():
                    values[spans.offsets[:-1]] = block.first(given, spans)  # class tokens to the last bit of run_first
            if recorder is not None and recorder.wants("features", layer):
                recorder.features[layer] = Tokens(values[:rows], spans.offsets.long())
        answer: Tensor = self.norm(values[:rows])
        return answer

    def _answers(self) -> bool:
        """Whether this is plain inference."""
        return not (self.training or torch.is_grad_enabled() or torch.compiler.is_compiling())

    def run_first(self, values: Tensor, spans: Spans) -> Tensor:
        """:meth:`run_blocks` for the first row of each image alone, ``(ΣN, D)`` to ``(B, D)``."""
        *blocks, last = cast(Iterable[Block], self.blocks)
        values = values if self.training else round_rows(values)
        for block in blocks:
            values = block(values, spans)
        answer: Tensor = self.norm(last.first(values, spans))
        return answer


def initialize(module: nn.Module) -> None:
    """Initialize a linear layer as ViT does: truncated normal weights, σ = 0.02, and zero biases."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
