"""Salient objects from the tokens of a classifier (§3.2, App. E)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spit.images import Images, to_float
from spit.model import SpitModel
from spit.partition import Partition
from spit.segmentation.cut import Cut
from spit.segmentation.foreground import orient
from spit.segmentation.guided import guided_filter
from spit.segmentation.normalized_cut import cut_graphs, standardize
from spit.segmentation.observation import Observation, check_model, join, maps_of, observe, parts_of
from spit.tokenizers import SuperpixelTokenizer


@dataclass(frozen=True)
class Segmentation:
    """What stands out in each image.

    Attributes:
        saliency: soft maps, above 0.5 on the foreground.
        mask: the foreground.
        values: the standardised Fiedler vector of the model's own scale, the foreground positive, one entry a token.
        partition: of the images as the model saw them; row v of ``values`` belongs to region v.
        tau: τ, the cosine above which tokens were joined, each image's own unless it was told.

    Shape:
        saliency ``(B, H, W)`` float32 and mask ``(B, H, W)`` bool, tuples of ``(H, W)`` where sizes differ;
        values ``(ΣN,)`` float32; tau ``(B,)`` float64.
    """

    saliency: Tensor | tuple[Tensor, ...]
    mask: Tensor | tuple[Tensor, ...]
    values: Tensor
    partition: Partition
    tau: Tensor

    def __len__(self) -> int:
        return len(self.mask)

    def __repr__(self) -> str:
        shares = ", ".join(f"{float(mask.float().mean()):.0%}" for mask in list(self.mask)[:6])
        more = f", … {len(self) - 6} more" if len(self) > 6 else ""
        return f"Segmentation(foreground [{shares}{more}], {self.partition!r})"


@torch.no_grad()
def segment(model: SpitModel, images: Images, *, tau: float | None = None, features: str = "tokens",
            layer: int = -1, foreground: str = "border", size: int | None = None, scales: int = 1,
            refine: str | None = None) -> Segmentation:
    """Find the salient object of each image: TokenCut on the model's own tokens.

    The tokens, class token apart, are a graph joined where their cosine is above τ, the image's own unless
    told; its normalised cut gives the Fiedler vector x; ``z = (x − mean) / std`` over the tokens, turned so
    that the foreground is positive, is painted on the regions without interpolation. The soft map is
    ``1 / (1 + e^(−z))`` and the mask where that exceeds 0.5. An image with nothing to cut, one superpixel say,
    is 0.5 everywhere and has no foreground.

    What the tokens are is the model's business: ``model.with_tokenizer("superpixel", levels=3)`` cuts finer ones.

    Args:
        model: in evaluation mode.
        images: at any size; never modified.
        tau, features, layer, foreground, size, scales, refine: see :class:`~spit.segmentation.Cut`.

    Shape:
        images ``(B, 3, H, W)``, one ``(3, H, W)``, or a list of different sizes.

    Raises:
        TypeError, ValueError: a model in training mode, an option or layer that is not there, or images that
            the model does not take.
    """
    return segment_with(model, images, Cut(tau, features, layer, foreground, size, scales, refine))


@torch.no_grad()
def segment_with(model: SpitModel, images: Images, cut: Cut) -> Segmentation:
    """:func:`segment` with its options in one object."""
    check_model(model)
    cut.layer_of(model.config.depth)
    finer = finer_models(model, cut.scales - 1)
    soft: list[Tensor] = []
    values, partitions, thresholds = [], [], []
    for some in parts_of(images):
        seen, found, used = cut_tokens(model, some, cut)
        maps = maps_of(seen.partition, found, some)
        for other in finer:
            further, more, _ = cut_tokens(other, some, cut)
            maps = [one + another for one, another in zip(maps, maps_of(further.partition, more, some), strict=True)]
        maps = [(total / cut.scales).sigmoid() for total in maps]
        if cut.refine is not None:
            maps = [guided_filter(to_float(image[None])[0], soft) for image, soft in zip(some, maps, strict=True)]
        soft += maps
        values.append(found)
        partitions.append(seen.partition)
        thresholds.append(used)
    saliency = join(soft)
    mask = saliency > 0.5 if isinstance(saliency, Tensor) else tuple(one > 0.5 for one in saliency)
    return Segmentation(saliency, mask, torch.cat(values), Partition.cat(partitions), torch.cat(thresholds))


def finer_models(model: SpitModel, count: int) -> list[SpitModel]:
    """The same model on the levels of the hierarchy below its own, one after the other.

    Raises:
        ValueError: its tokens have no hierarchy, or not so many levels.
    """
    if count == 0:
        return []
    levels = model.tokenizer.levels if isinstance(model.tokenizer, SuperpixelTokenizer) else 1
    if count >= levels:
        raise ValueError(f"expected no more scales than the {levels} of the model's {model.config.tokenizer} tokens, "
                         f"got {count + 1}")
    return [model.with_tokenizer("superpixel", levels=levels - by).eval() for by in range(1, count + 1)]


def cut_tokens(model: SpitModel, images: Sequence[Tensor], cut: Cut) -> tuple[Observation, Tensor, Tensor]:
    """One pass of some images, their standardised Fiedler vectors with the foreground positive, and the τ of each.

    Shape:
        images ``(3, H, W)`` each; the vectors ``(ΣN,)`` float32, τ ``(B,)`` float64.
    """
    seen = observe(model, images, cut)
    vectors, used = cut_graphs(seen.compared, cut.tau)
    values = standardize(vectors, seen.compared.offsets)
    return seen, orient(model, seen, values, cut.foreground).float(), used
