"""f: a stack of attention blocks and the final norm."""

from collections.abc import Callable, Iterable, Mapping
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

Run = Callable[..., Tensor]
WITHOUT_GRAPHS: dict[str | None, str | None] = {
    "reduce-overhead": None, "max-autotune": "max-autotune-no-cudagraphs"}  # modes of torch.compile


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
        self.compiled: Run | None = None
        self.apply(initialize)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles are not compiled: compiled code would run the weights of this module."""
        return {**super().__getstate__(), "compiled": None}  # type: ignore[no-untyped-call]

    def forward(self, tokens: Tokens, recorder: Recorder | None = None) -> Tokens:
        """Run the blocks.

        Args:
            tokens: with the class token first in every image.
            recorder: filled with what it asks for; the result is the same to the last bit.
        """
        spans = Spans.of(tokens)
        if self.compiled is not None and recorder and not recorder.fused:
            # A second, plain pass: the compiled one stays the same to the last bit.
            devices = [tokens.values.device] if tokens.values.is_cuda else []
            with torch.random.fork_rng(devices):
                self.run_blocks(tokens.values, spans, recorder)
            recorder = None
        return tokens.replace(self.run(tokens.values, spans, recorder))

    def first(self, tokens: Tokens) -> Tensor:
        """The first row of each image as :meth:`forward` returns it, ``(B, D)``: class tokens, all that h reads.

        In plain inference the last block computes nothing else.
        """
        if self.compiled is None and self._answers():
            return self.run_first(tokens.values, Spans.of(tokens))
        return self.forward(tokens).values[tokens.offsets[:-1]]

    def compile_blocks(self, **options: Any) -> None:
        """Compile :meth:`run_blocks`, without CUDA graphs.

        Args:
            options: of :func:`torch.compile`.
        """
        self.compiled = torch.compile(self.run_blocks, **without_graphs(options))

    def run(self, values: Tensor, spans: Spans, recorder: Recorder | None = None) -> Tensor:
        """:meth:`run_blocks`, by compiled code if there is any."""
        if self.compiled is None:
            return self.run_blocks(values, spans, recorder)
        return _run_any_length(self.compiled, values, spans, recorder or None)

    def run_blocks(self, values: Tensor, spans: Spans, recorder: Recorder | None = None) -> Tensor:
        """All blocks and the final norm on packed rows, ``(ΣN, D)`` to ``(ΣN, D)``."""
        rows, values = len(values), values if self.training else round_rows(values)
        for layer, block in enumerate(cast(Iterable[Block], self.blocks)):
            if recorder is not None and recorder.wants("attention", layer):
                recorder.attention[layer] = block.attention_maps(values, spans)
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


def without_graphs(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of :func:`torch.compile` with a mode that uses no CUDA graphs."""
    mode = options.get("mode")
    return {**options, "mode": WITHOUT_GRAPHS.get(mode, mode)}


def _run_any_length(compiled: Run, values: Tensor, spans: Spans, *more: object) -> Tensor:
    """Call compiled code so that another number of rows does not compile it again."""
    for rows in (values, spans.image_of):
        torch._dynamo.maybe_mark_dynamic(rows, 0)
    return compiled(values, spans, *more)


def initialize(module: nn.Module) -> None:
    """Initialize a linear layer as ViT does: truncated normal weights, σ = 0.02, and zero biases."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
