"""γ, the embedder: features to width D, and the class token put first (§2.1, App. A)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit.backbone.linear import Linear, product_dtype, round_rows
from spit.tokens import Tokens


class Embedder(nn.Module):
    """``γ(z) = L z + b``, with a learned class token in front of every image's tokens.

    No table of positions is needed: the position histogram is part of z, so ``[L, Q]`` acting on ``[z, position]`` is
    the canonical ``L z + Q`` (Prop. 1). The class token has no position; one parameter holds the token and the
    constant that the canonical ViT adds to it.

    Args:
        features: columns of φ's tokens.
        width: D.

    Shape:
        Tokens ``(ΣN, features)`` to Tokens ``(Σ(N + 1), D)``, in the dtype of the parameters.
    """

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.projection = Linear(features, width)
        self.class_token = nn.Parameter(torch.empty(width))
        nn.init.trunc_normal_(self.projection.weight, std=0.02)
        nn.init.zeros_(self.projection.bias)
        nn.init.trunc_normal_(self.class_token, std=0.02)

    def forward(self, tokens: Tokens) -> Tokens:
        # Under autocast the product has half precision; the residual stream keeps that of the parameters.
        values = self.project(tokens.values).to(self.class_token.dtype)
        return put_class_token(tokens.replace(values), self.class_token)

    def project(self, values: Tensor) -> Tensor:
        """``L z + b`` alone, ``(ΣN, features)`` to ``(ΣN, D)``."""
        rows = round_rows(values.to(product_dtype(self.projection.weight)))
        answer: Tensor = self.projection(rows)[: len(values)]
        return answer


def put_class_token(tokens: Tokens, class_token: Tensor) -> Tokens:
    """Put one more row, ``(D,)``, or several, ``(P, D)``, first in every image: ``(ΣN, D)`` to ``(Σ(P + N), D)``."""
    images, first = len(tokens), class_token if class_token.ndim == 2 else class_token[None]
    rows = tokens.values.new_empty(len(tokens.values) + images * len(first), tokens.values.shape[1])
    offsets = tokens.offsets + len(first) * torch.arange(images + 1, device=tokens.offsets.device)
    rows.index_copy_(0, _rows_after(tokens, len(first)), tokens.values)
    places = (offsets[:-1, None] + torch.arange(len(first), device=offsets.device)).flatten()
    known = tokens.known_counts
    return Tokens(rows.index_copy_(0, places, first.repeat(images, 1)), offsets).with_counts(
        known and tuple(count + len(first) for count in known))


def take_class_token(tokens: Tokens) -> tuple[Tensor, Tokens]:
    """The inverse of :func:`put_class_token`: the first row of every image, ``(B, D)``, and the others, ``(ΣN, D)``."""
    return tokens.first, drop_class_token(tokens)


def drop_class_token(tokens: Tokens, rows: int = 1) -> Tokens:
    """All tokens but the first ``rows`` of every image, ``(Σ(rows + N), D)`` to ``(ΣN, D)``."""
    images, known = len(tokens), tokens.known_counts
    offsets = tokens.offsets - rows * torch.arange(images + 1, device=tokens.offsets.device)
    others = Tokens(tokens.values[: len(tokens.values) - rows * images], offsets)
    return Tokens(tokens.values[_rows_after(others, rows)], offsets).with_counts(
        known and tuple(count - rows for count in known))


def resize_patches(weight: Tensor, channels: int, side: int, wanted: int) -> Tensor:
    """γ's weights for colour patches of another side; the columns after those of the patches stay.

    A patch of ``side`` × ``side`` pixels that is sampled at the wanted side has the token that it had before. Among the
    larger weights that do so these are the smallest (Beyer et al., FlexiViT, 2023).

    Shape:
        weight ``(D, channels·side² + others)`` to ``(D, channels·wanted² + others)``.
    """
    low, high = sorted((side, wanted))
    identity = torch.eye(low, dtype=torch.float64, device=weight.device)
    finer = F.interpolate(identity[None], size=high, mode="linear", align_corners=False)[0]  # (low, high)
    between = torch.linalg.pinv(finer).T if wanted > side else finer.T  # (side, wanted)
    patches = weight[:, : channels * side**2].double().unflatten(1, (channels, side, side))
    resized = (between.T @ patches @ between).flatten(1).to(weight)
    return torch.cat([resized, weight[:, channels * side**2 :]], 1)


def _rows_after(tokens: Tokens, count: int) -> Tensor:
    """Where each row of these tokens is once every image has ``count`` more rows in front, ``(ΣN,)``."""
    return torch.arange(len(tokens.values), device=tokens.values.device) + count * (tokens.image_of + 1)
