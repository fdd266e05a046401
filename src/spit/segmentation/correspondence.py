"""Similar parts across images (§3.3, App. F)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.forward_pass import each_alone
from spit.model import SpitModel
from spit.partition import Partition
from spit.predictor import Maps, Prediction, Predictor, Sources, at_size, stack
from spit.segmentation.options import TEMPERATURE, TokenCut
from spit.segmentation.saliency import cut_tokens
from spit.wording import plural

COMPONENTS = 3


@dataclass(frozen=True)
class Correspondence:
    """Pseudo-colours of a source image and of target images; black is the source's background.

    Shape:
        source ``(H, W, 3)``; targets ``(B, H, W, 3)``, or a tuple of ``(H, W, 3)`` if sizes differ; float32 in [0, 1].

    Example:
        >>> import spit, torch
        >>> spit.Correspondence(torch.zeros(3, 5, 3), torch.zeros(2, 4, 4, 3))
        Correspondence(source 5 × 3, 2 targets)
    """

    source: Tensor
    targets: Maps

    def __repr__(self) -> str:
        (height, width), targets = self.source.shape[:2], plural(len(self.targets), "target")
        return f"Correspondence(source {width} × {height}, {targets})"


@dataclass(frozen=True)
class Scene:
    """What correspondences need of one image."""

    partition: Partition
    tokens: Tensor  # (N, D) of unit length
    side: Tensor  # (N,) bool, True on the foreground
    colors: Tensor  # (N, 3) in [0, 1], 0 on the background
    size: tuple[int, ...]  # (H, W) of the image's maps

    def paint(self, colors: Tensor) -> Tensor:
        """Colours of the regions at the image's own pixels, ``(N, 3)`` to ``(H, W, 3)`` float32."""
        return at_size(self.partition.paint(colors.float())[0], self.size)


def correspond(source: Prediction | Predictor | SpitModel, others: Any, targets: Sources | None = None, *,
               temperature: float = TEMPERATURE, size: int | None = None, **options: Any) -> Correspondence:
    """Colour the parts of a source image, and the parts of target images that are like them.

    Call it as ``correspond(prediction, others)`` with predictions of one source and of the targets, or as
    ``correspond(model, source, targets)`` with images.

    With z the final tokens of unit length, without the class token, ``A = softmax(z_m z_nᵀ / 0.01)`` is the
    cross-attention between source m and target n, and ``c_{m→n} = Aᵀ c_m``: each token of the target mixes the colours
    of similar tokens of the source, so the softmax runs over the source. ``c_m`` are the first three principal
    components of ``z_m``, scaled to [0, 1] over the foreground, and 0 on the background that the normalised cut finds.
    The paper's components have random signs (``torch.pca_lowrank``); here the loading of the largest magnitude is
    positive.

    Args:
        source: a prediction of one image; or a model in evaluation mode.
        others: a prediction of the targets; or the source image.
        targets: with a model, the target images, of any size; not modified.
        temperature: of the softmax.
        size: with a model, the shorter side that it sees (default: the image's own).
        options: of :class:`~spit.segmentation.TokenCut`.

    Example:
        >>> import spit, torch
        >>> predictor = spit.Predictor(spit.create_model("spit_tiny_16", pretrained=True))
        >>> source, targets = torch.rand(3, 64, 64), torch.rand(2, 3, 48, 64)
        >>> spit.correspond(predictor(source, crop=False), predictor(targets, crop=False))
        Correspondence(source 64 × 64, 2 targets)
    """
    cut = TokenCut.from_dict(options, "option of correspond")
    if isinstance(source, Prediction):
        if not isinstance(others, Prediction) or targets is not None or size is not None:
            raise TypeError("expected correspond(prediction, others) with a prediction of the targets and no images or "
                            f"size, got {type(others).__name__}; call predictor(targets, crop=False, size=…)")
        first, rest = source, others
    else:
        predictor = Predictor.of(source)
        if targets is None:
            raise TypeError("expected correspond(model, source, targets), got no targets")
        first, rest = (predictor(images, crop=False, size=size) for images in (others, targets))
    if len(first) != 1:
        raise ValueError(f"expected one source image, got {len(first)}; call once for each source")
    if not temperature > 0:
        raise ValueError(f"expected a temperature above 0, got {temperature}")
    if first.predictor.model is not rest.predictor.model and first.predictor.digest != rest.predictor.digest:
        raise ValueError(f"expected predictions of one model, got {first.predictor.name} and {rest.predictor.name}, "
                         "whose tokens cannot be compared")
    [scene] = scenes(first, cut)
    found = [transfer(scene, target, temperature) for target in scenes(rest, cut)]
    return Correspondence(scene.paint(scene.colors), stack(found))


@torch.no_grad()
def scenes(prediction: Prediction, cut: TokenCut) -> list[Scene]:
    """One scene for each image, for use in any pair."""
    made, sizes = [], iter(prediction.sizes)
    cuts = each_alone(lambda one: cut_tokens(one, cut)[0], prediction.passes)
    for one, values in zip(prediction.passes, cuts, strict=True):
        sides = torch.split(values > 0, one.tokens.counts.tolist())
        for index, (tokens, side) in enumerate(zip(one.tokens, sides, strict=True)):
            unit = F.normalize(tokens.double(), dim=1)
            made.append(Scene(one.partition[index], unit, side, pseudo_colors(unit, side), next(sizes)))
    return made


def transfer(source: Scene, target: Scene, temperature: float = TEMPERATURE) -> Tensor:
    """``c_{m→n} = Aᵀ c_m`` at the target's pixels, ``(H, W, 3)`` float32."""
    return target.paint(mix(source.tokens, target.tokens, source.colors, temperature))


def colored_share(source: Scene, target: Scene, temperature: float = TEMPERATURE) -> float:
    """Share of the target's area that attends to the source's foreground; the rest is black."""
    found = mix(source.tokens, target.tokens, source.side[:, None].to(source.tokens), temperature)
    return float(target.paint(found).mean())


def mix(source: Tensor, target: Tensor, colors: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """``softmax(z_m z_nᵀ / temperature)ᵀ c_m``, ``(N, 3)``, the softmax over the source's tokens."""
    return (source @ target.T / temperature).softmax(0).T @ colors


def pseudo_colors(tokens: Tensor, side: Tensor) -> Tensor:
    """The first three principal components of all tokens as colours, black on the background.

    Each component is scaled to [0, 1] over the foreground. One without spread there, or that does not exist because
    tokens have fewer than three columns, is 0.5.
    """
    centred = tokens - tokens.mean(0)
    _, vectors = torch.linalg.eigh(centred.T @ centred)
    vectors = vectors.flip(1)[:, :COMPONENTS]
    signs = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
    scores = F.pad(centred @ (vectors * signs), (0, COMPONENTS - vectors.shape[1]))
    if not bool(side.any()):
        return torch.zeros_like(scores)
    low, high = torch.aminmax(scores[side], dim=0)
    spread = high - low
    colors = torch.where(spread > 1e-9, (scores - low) / spread.clamp_min(1e-9), 0.5)
    return colors.clamp(0, 1) * side[:, None]


def all_pairs(made: Sequence[Scene], temperature: float = TEMPERATURE) -> list[list[Tensor]]:
    """``c_{m→n}`` at image n's pixels in row m and column n; the diagonal has the source's own colours."""
    return [[source.paint(source.colors) if source is target else transfer(source, target, temperature)
             for target in made] for source in made]
