"""Salient objects from the tokens of a classifier (§3.2, App. E)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from spit.drawing.notebook import segmentation_png
from spit.forward_pass import ForwardPass, each_alone
from spit.images import to_float
from spit.partition import Hierarchy, Partition
from spit.predictor import Maps, Prediction, at_size, stack
from spit.segmentation.cleaning import clean, finer_levels
from spit.segmentation.full_size import along_superpixels
from spit.segmentation.head import head_for, head_scores
from spit.segmentation.normalized_cut import normalized_cut, standardize
from spit.segmentation.options import TokenCut
from spit.segmentation.rle import encode_mask
from spit.tokenizers import NestedTokenizer, SuperpixelTokenizer

if TYPE_CHECKING:
    from spit.answers.segment import Segment

SHARPNESS = 2.0  # log-odds of a token one standard deviation from the mean


@dataclass(frozen=True, eq=False)
class Segmentation:
    """The salient object of each image.

    Attributes:
        saliency: soft maps, above 0.5 on the foreground.
        mask: the foreground.
        values: log-odds of each token, positive on the foreground, before cleaning: of the cut, twice its standardised
            Fiedler vector; with a head, smoothed over the graph of regions.
        partition: of the images as the model saw them; row v of ``values`` belongs to region v.
        tau: the cosine τ above which tokens were joined, for each image; NaN with method "head".

    Shape:
        saliency ``(B, H, W)`` float32 and mask ``(B, H, W)`` bool, tuples of ``(H, W)`` if sizes differ; values
        ``(ΣN,)`` float32; tau ``(B,)`` float64.

    Example:
        >>> import spit, torch
        >>> model = spit.create_model("vit_tiny_16")
        >>> found = spit.segment(model, torch.rand(2, 3, 32, 48))
        >>> found.saliency.shape, found.values.shape
        (torch.Size([2, 32, 48]), torch.Size([12]))
    """

    saliency: Maps
    mask: Maps
    values: Tensor
    partition: Partition
    tau: Tensor

    @staticmethod
    def cat(parts: Sequence["Segmentation"]) -> "Segmentation":
        """The images of several segmentations one after another."""
        return Segmentation(stack([one for part in parts for one in part.saliency]),
                            stack([one for part in parts for one in part.mask]),
                            torch.cat([part.values for part in parts]),
                            Partition.cat([part.partition for part in parts]),
                            torch.cat([part.tau for part in parts]))

    def to_dict(self, index: int) -> dict[str, Any]:
        """The mask of an image as COCO run lengths, its box ``x, y, width, height``, area, share and τ, for JSON."""
        mask, tau = self.mask[index].cpu().numpy(), float(self.tau[index])
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        box = [0] * 4 if not len(rows) else [columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1]
        return {"mask": encode_mask(mask), "box": [int(one) for one in box], "area": int(mask.sum()),
                "foreground": float(mask.mean()), "tau": None if np.isnan(tau) else tau}

    def __len__(self) -> int:
        return len(self.mask)

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        return segmentation_png(list(self.saliency), list(self.mask))

    def __repr__(self) -> str:
        shares = ", ".join(f"{float(mask.float().mean()):.0%}" for mask in list(self.mask)[:6])
        more = f", … {len(self) - 6} more" if len(self) > 6 else ""
        return f"Segmentation(foreground [{shares}{more}], {self.partition!r})"


def segment_prediction(prediction: Prediction, question: "Segment") -> Segmentation:
    """The masks of images whose tokens are those to cut; :class:`~spit.answers.Segment` asks for it."""
    scores, tau = scores_of(prediction, question)
    maps = list(prediction.partition.paint(scores))
    found = each_alone(lambda index: finish(prediction, index, maps[index], question.clean), range(len(maps)))
    saliency, masks = zip(*found, strict=True)
    return Segmentation(stack(saliency), stack(masks), scores, prediction.partition, tau)


def scores_of(prediction: Prediction, cut: "Segment") -> tuple[Tensor, Tensor]:
    """Log-odds of the tokens, ``(ΣN,)`` float32, positive on the foreground, and each image's τ, ``(B,)`` float64."""
    head = head_for(prediction.predictor, cut.method, cut.token_head)
    if head is not None and cut.method == "head":
        return head_scores(prediction, head), torch.full((len(prediction),), torch.nan, dtype=torch.float64)
    found = each_alone(lambda one: cut_tokens(one, cut), prediction.passes)
    values, tau = (torch.cat(parts) for parts in zip(*found, strict=True))
    scores = SHARPNESS * values
    return scores if head is None else head_scores(prediction, head, scores), tau


def finish(prediction: Prediction, index: int, scores: Tensor, cleaned: bool) -> tuple[Tensor, Tensor]:
    """The soft map and the mask of one image, ``(H, W)``, from log-odds at the pixels that the model saw, ``(h, w)``.

    Args:
        index: of the image.
        cleaned: solve the energy of :mod:`spit.segmentation.cleaning`, and bring the mask of a reduced image back along
            superpixels of the original; otherwise log-odds are taken as they are, at the nearest pixel.
    """
    image, original, size = prediction.images[index], prediction.originals[index], prediction.sizes[index]
    if not cleaned or not bool(scores.any()):  # nothing to decide
        return at_size(scores.sigmoid(), size), at_size(scores > 0, size)
    levels = finer_levels(hierarchy_of(prediction.predictor.model.tokenizer, image, prediction.partition[index]))
    soft, mask = clean(image, levels, region_means(scores, levels[0]))
    if original.shape[1] * original.shape[2] > mask.numel():
        return along_superpixels(original, soft, mask)
    return at_size(soft, size), at_size(mask, size)


def hierarchy_of(tokenizer: Any, image: Tensor, partition: Partition) -> Hierarchy:
    """The levels below the partition of one image: the tokenizer's own, or superpixels cut along its boundaries."""
    if isinstance(tokenizer, NestedTokenizer):
        return tokenizer.hierarchy(image)
    return SuperpixelTokenizer().hierarchy(image).below(partition)


def region_means(values: Tensor, labels: Tensor) -> Tensor:
    """The mean of a map, ``(h, w)``, over each region of a label map, ``(N,)`` float64 on the CPU."""
    flat = labels.cpu().flatten()
    return torch.bincount(flat, values.cpu().flatten().double()) / torch.bincount(flat)


def cut_tokens(seen: ForwardPass, cut: TokenCut) -> tuple[Tensor, Tensor]:
    """The standardised Fiedler vectors of a pass, ``(ΣN,)``, with the foreground positive, and each image's τ."""
    layer = cut.layer_of(seen.model.config.depth)
    compared = seen.layer_keys(layer) if cut.cut_on == "keys" else seen.layer_tokens(layer)
    vectors, used = normalized_cut(compared, cut.tau)
    return orient(seen, standardize(vectors, compared.offsets), cut.foreground).float(), used


def orient(seen: ForwardPass, values: Tensor, rule: str) -> Tensor:
    """Flip each image's values, ``(ΣN,)``, if needed, so that the foreground is positive; in a tie, they stay.

    Args:
        values: standardised Fiedler vectors, the entry of the largest magnitude positive.
        rule: ``foreground`` of :class:`TokenCut`.
    """
    if rule == "largest":
        return values
    masks = seen.paint(values > 0)
    flip = _by_border(masks) if rule == "border" else _by_class_token(seen, masks)
    return torch.where(flip[seen.tokens.image_of], -values, values)


def _by_border(masks: list[Tensor]) -> Tensor:
    """Whether the positive side has more than half of the image's border, ``(B,)`` bool."""
    rims = [torch.cat([mask[0], mask[-1], mask[1:-1, 0], mask[1:-1, -1]]) for mask in masks]
    return torch.stack([2 * rim.sum() > len(rim) for rim in rims])


def _by_class_token(seen: ForwardPass, masks: list[Tensor]) -> Tensor:
    """Whether the class token of the negative side alone is nearer to the whole image's (App. E), ``(B,)`` bool.

    App. E says "class tokens (produced given the saliency mask)". Here the mask covers pixels with the image's mean
    colour; dropping the tokens of one side instead was right less often (docs/segmentation.md).
    """
    sides = []
    for image, mask in zip(seen.images, masks, strict=True):
        pixels = to_float(image[None])[0]
        mean = pixels.mean((1, 2), keepdim=True)
        sides += [torch.where(mask, pixels, mean), torch.where(mask, mean, pixels)]
    near = F.cosine_similarity(seen.model.embed(sides).view(len(masks), 2, -1).double(),
                               seen.class_token[:, None].double(), dim=2)
    both = torch.stack([mask.any() & ~mask.all() for mask in masks])
    return (near[:, 1] > near[:, 0]) & both
