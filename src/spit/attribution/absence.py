"""The tokens of an image, any of which can be absent: from the sequence, and from the patches of the others."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.backbone.linear import product
from spit.embedder import Embedder
from spit.features import FeatureExtractor
from spit.forward_pass import ForwardPass
from spit.seams.crops import CropExtractor
from spit.tokens import Tokens, offsets_of


@dataclass(frozen=True)
class ImageTokens:
    """The features of one image's tokens, and which token lies where in their patches.

    A token whose patch is a square around its region (``fill="image"``) also shows its neighbours. If one of them is
    absent, its part of the patch gets the image's mean colour; otherwise the model would still see what was left out.

    Attributes:
        features: ``(N, ·)``, the colours first, channel by channel.
        cells: the token at each of the K² cells of each patch, ``(N, K²)`` int64; None if patches show no neighbours.
        color: the image's mean colour as the model sees it, ``(C, 1)``.
    """

    features: Tensor
    cells: Tensor | None = None
    color: Tensor | None = None

    def subsets(self, present: Tensor) -> Tokens:
        """The tokens of each subset, ``(S, N)`` bool on the features' device, packed one subset after the other."""
        subset, token = present.nonzero().unbind(1)
        values = self.features[token]
        if self.cells is not None and self.color is not None:
            shown = present[subset[:, None], self.cells[token]]  # (rows, K²)
            width = len(self.color) * self.cells.shape[1]
            colors = values[:, :width].unflatten(1, (len(self.color), -1))
            values[:, :width] = torch.where(shown[:, None], colors, self.color).flatten(1)
        return Tokens(values, offsets_of(present.sum(1)))


@dataclass(frozen=True)
class EmbeddedTokens:
    """What γ makes of one image's tokens, in parts that add up, as γ is linear: :func:`embedded` makes them.

    So a subset takes sums of a few rows, where :meth:`ImageTokens.subsets` makes new features that γ multiplies anew.

    Attributes:
        parts: ``(P, D)``, one for each token and each that its patch shows, itself always; token by token.
        owner: the token that each is a part of, ``(P,)``.
        needed: the token that it shows; without it the part is absent, ``(P,)``.
    """

    parts: Tensor
    owner: Tensor
    needed: Tensor

    def subsets(self, present: Tensor) -> Tokens:
        """γ of :meth:`ImageTokens.subsets`, before the class token."""
        subset, part = (present[:, self.owner] & present[:, self.needed]).nonzero().unbind(1)
        row = torch.stack([subset, self.owner[part]])
        first = torch.ones_like(subset, dtype=torch.bool)
        first[1:] = (row[:, 1:] != row[:, :-1]).any(0)  # part of each token
        values = F.embedding_bag(part, self.parts, first.nonzero()[:, 0], mode="sum")
        return Tokens(values, offsets_of(present.sum(1)))


def embedded(tokens: ImageTokens, embedder: Embedder) -> EmbeddedTokens:
    """The parts of γ's answer for tokens any of which can be absent; see :class:`EmbeddedTokens`."""
    features, own = tokens.features, torch.arange(len(tokens.features), device=tokens.features.device)
    if tokens.cells is None or tokens.color is None:
        return EmbeddedTokens(embedder.project(features).to(embedder.class_token.dtype), own, own)
    width = len(tokens.color) * tokens.cells.shape[1]
    pairs = own[:, None] * len(own) + torch.cat([own[:, None], tokens.cells], 1)
    owner, needed = (pair := pairs.unique()) // len(own), pair % len(own)
    colors = features[:, :width].unflatten(1, (len(tokens.color), -1))
    shown = (tokens.cells[owner] == needed[:, None])[:, None] * (colors - tokens.color)[owner]
    weight = embedder.projection.weight[:, :width].contiguous()
    parts = product(shown.flatten(1).to(weight), weight, None)
    bare = torch.cat([tokens.color.expand_as(colors).flatten(1), features[:, width:]], 1)
    parts[owner == needed] += embedder.project(bare)
    return EmbeddedTokens(parts.to(embedder.class_token.dtype), owner, needed)


def image_tokens(seen: ForwardPass) -> list[ImageTokens]:
    """The tokens of each image of a pass."""
    extractor = seen.model.extractor
    if not isinstance(extractor, FeatureExtractor | CropExtractor):
        return [ImageTokens(rows) for rows in seen.features]
    found = []
    for index, (rows, image) in enumerate(zip(seen.features, seen.images, strict=True)):
        own = seen.partition[index]
        windows = extractor.windows(own)
        cells = None if windows is None else patch_cells(own.blocks[0][0].long(), windows, extractor.resolution)
        found.append(ImageTokens(rows, cells, None if cells is None else extractor.mean_color(image)))
    return found


def patch_cells(labels: Tensor, windows: Tensor, resolution: int) -> Tensor:
    """The label in the middle of each cell of a K × K grid on each window.

    Shape:
        labels ``(H, W)`` and windows ``(N, 4)``, ``(y0, x0, y1, x1)`` with exclusive ends, to ``(N, K²)``.
    """
    middle = (torch.arange(resolution, device=labels.device) + 0.5) / resolution
    places = windows[:, :2, None] + (windows[:, 2:] - windows[:, :2])[:, :, None] * middle  # (N, 2, K)
    y, x = (axis.long().clamp(0, side - 1) for axis, side in zip(places.unbind(1), labels.shape, strict=True))
    return labels[y[:, :, None], x[:, None]].flatten(1)
