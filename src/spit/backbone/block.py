"""One block of f: attention and an MLP, each behind a norm, a scale and stochastic depth."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from spit.backbone.attention import Attention, Heads
from spit.backbone.linear import Linear
from spit.backbone.spans import Spans


class Block(nn.Module):
    """``x ← x + s₁ ⊙ attention(norm(x))``, then ``x ← x + s₂ ⊙ mlp(norm(x))``.

    The pre-norm block of ViT with LayerScale and stochastic depth (App. C). LayerNorm has ε = 1e-6 and the MLP the
    exact GELU, as in ViT and DeiT; see :class:`~spit.backbone.linear.Linear`.

    Args:
        drop_path: probability that an image skips a branch in training. The other arguments are those of
            :class:`~spit.backbone.TransformerOptions`.

    Shape:
        values ``(ΣN, D)`` to ``(ΣN, D)``.
    """

    def __init__(self, width: int, heads: int, mlp_ratio: float, qkv_bias: bool, layer_scale: float | None,
                 drop_path: float) -> None:
        super().__init__()
        self.drop_path = drop_path
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attention = Attention(width, heads, qkv_bias)
        self.scale1 = LayerScale(width, layer_scale) if layer_scale is not None else nn.Identity()
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = MLP(width, round(width * mlp_ratio))
        self.scale2 = LayerScale(width, layer_scale) if layer_scale is not None else nn.Identity()

    def forward(self, values: Tensor, spans: Spans, observe: Callable[[Heads], None] | None = None) -> Tensor:
        rate = self.drop_path if self.training else 0.0
        values = values + drop_images(self.scale1(self.attention(self.norm1(values), spans, observe)), spans, rate)
        return values + drop_images(self.scale2(self.mlp(self.norm2(values))), spans, rate)

    def first(self, values: Tensor, spans: Spans) -> Tensor:
        """:meth:`forward` for the first row of each image alone, ``(ΣN, D)`` to ``(B, D)``."""
        rate = self.drop_path if self.training else 0.0
        first = values[spans.offsets[:-1]]
        first = first + drop_rows(self.scale1(self.attention.first(self.norm1(values), spans)), rate)
        return first + drop_rows(self.scale2(self.mlp(self.norm2(first))), rate)


class LayerScale(nn.Module):
    """A learned factor for each of the D columns."""

    def __init__(self, width: int, start: float) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.full((width,), start))

    def forward(self, values: Tensor) -> Tensor:
        return values * self.factor


class MLP(nn.Module):
    """Two linear layers around GELU, applied to each row; see :class:`~spit.backbone.linear.Linear`."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.inner = Linear(width, hidden)
        self.outer = Linear(hidden, width)

    def forward(self, values: Tensor) -> Tensor:
        answer: Tensor = self.outer(self.inner(values, gelu=True))
        return answer


def drop_images(branch: Tensor, spans: Spans, rate: float) -> Tensor:
    """Stochastic depth on packed rows: each image loses the whole branch with probability ``rate``.

    The others are divided by ``1 − rate``, so that the expectation is the branch itself. Random numbers come from
    torch's generator of the branch's device.
    """
    return branch if rate == 0 else branch * _kept(branch, len(spans), rate)[spans.image_of, None]


def drop_rows(branch: Tensor, rate: float) -> Tensor:
    """:func:`drop_images` where every image has one row."""
    return branch if rate == 0 else branch * _kept(branch, len(branch), rate)[:, None]


def _kept(branch: Tensor, images: int, rate: float) -> Tensor:
    return (torch.rand(images, device=branch.device) >= rate).to(branch.dtype) / (1 - rate)
