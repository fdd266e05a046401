"""Fewer tokens of an image: which of them to keep."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.partition import Partition
from spit.tokens import Tokens

BITS = 20  # of a centre in half pixels


class Budget(NamedTuple):
    """The most tokens that an image keeps: random ones, or ones that are spread over it."""

    tokens: int
    spread: bool = False


def choose_tokens(tokens: Tokens, budgets: Sequence[int], places: Tensor | None = None) -> Tensor:
    """Which tokens to keep, ``(ΣN,)`` bool: as many as the image's budget, at even steps along an order.

    Nothing waits for a GPU.

    Args:
        tokens: of any number in each image.
        budgets: the most tokens of each image.
        places: ``(ΣN,)`` int64 below 2⁴⁰, by which an image's tokens are ordered. Default: a random order by torch's
            generator of the tokens' device, which is token dropout (App. C): each subset is as likely as any other.
    """
    counts = tokens.counts
    if len(set(budgets)) == 1:
        most = counts.clamp(max=budgets[0])
    else:
        most = torch.tensor(budgets, pin_memory=counts.is_cuda).to(counts.device, non_blocking=True).minimum(counts)
    return choose_rows(tokens.offsets, len(tokens.values), most, places)


def choose_rows(offsets: Tensor, rows: int, most: Tensor, places: Tensor | None = None) -> Tensor:
    """:func:`choose_tokens` of a packed batch that may have rows in excess behind it; these are not chosen.

    Args:
        offsets: of the tokens, ``(B + 1,)``.
        rows: at least ΣN.
        most: how many tokens of each image to keep, at most all, ``(B,)``.
        places: as above, ``(rows,)``.
    """
    row = torch.arange(rows, device=offsets.device)
    image_of = torch.bucketize(row, offsets[1:], right=True)  # B in excess
    if places is None:
        places = torch.randint(1 << 2 * BITS, row.shape, device=row.device)
    order = (image_of << 2 * BITS | places).argsort(stable=True)  # images in order, each image's tokens by their places
    most, counts = F.pad(most, (0, 1))[image_of], F.pad(offsets.diff(), (0, 1), value=1)[image_of]
    rank = row - offsets[image_of]
    chosen = (rank + 1) * most // counts > rank * most // counts
    return torch.empty_like(chosen).index_copy(0, order, chosen)


def draw_tokens(partition: Partition, features: Tokens, budgets: Sequence[Budget]) -> Tensor:
    """Which tokens to keep in training, ``(ΣN,)`` bool: random ones, or spread along a curve that is drawn anew."""
    device, most = features.values.device, [budget.tokens for budget in budgets]
    if not any(budget.spread for budget in budgets):
        return choose_tokens(features, most)
    spread = torch.tensor([budget.spread for budget in budgets], pin_memory=device.type == "cuda")
    spread = spread.to(device, non_blocking=True)[features.image_of]
    along_curve = curve_places(partition, torch.randint(1 << BITS - 2, (2,), device=device))
    at_random = torch.randint_like(along_curve, 1 << 2 * BITS)
    return choose_tokens(features, most, torch.where(spread, along_curve, at_random))


def spread_tokens(partition: Partition, budget: int) -> Tensor:
    """Which tokens to keep so that at most ``budget`` are left of each image, spread over it, ``(ΣN,)`` bool.

    Tokens are taken at even steps along a Z-order curve through the centres of their boxes, so that of neighbours some
    stay, and small tokens lie as dense as before. The same image has the same answer in every batch.

    Example:
        >>> import spit, torch
        >>> from spit.thinning import spread_tokens
        >>> model = spit.create_model("spit_tiny_16").eval()
        >>> partition, features = model.tokenize(torch.rand(2, 3, 64, 64))
        >>> fewer = features.select(spread_tokens(partition, 8))
        >>> fewer.counts.tolist(), model.run(fewer)[0].shape
        ([8, 8], torch.Size([2, 1000]))
    """
    tokens = Tokens(partition.offsets.new_empty(int(partition.offsets[-1]), 0), partition.offsets)
    return choose_tokens(tokens, [budget] * len(partition), curve_places(partition))


def curve_places(partition: Partition, shift: Tensor | None = None) -> Tensor:
    """How far along a Z-order curve each token lies, by the centre of its box, ``(ΣN,)`` int64.

    Args:
        partition: whose tokens.
        shift: ``(2,)`` int64, added to the centres in half pixels (default: 0). Another shift is another curve.
    """
    boxes = partition.boxes().long()
    centers = boxes[:, :2] + boxes[:, 2:]  # y and x in half pixels
    if shift is not None:
        centers = centers + shift
    bits = torch.arange(BITS, device=boxes.device)
    digits = (centers[..., None] >> bits & 1) << 2 * bits  # (ΣN, 2, BITS)
    return digits[:, 0].sum(1) * 2 + digits[:, 1].sum(1)
