"""The side of a cut that is the foreground."""

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.forward_pass import ForwardPass
from spit.images import to_float


def orient(seen: ForwardPass, values: Tensor, rule: str) -> Tensor:
    """Flip each image's values if needed, so that the foreground is positive.

    Args:
        values: standardised Fiedler vectors, the entry of the largest magnitude positive, as in
            :func:`~spit.segmentation.normalized_cut.normalized_cut`.
        rule: ``foreground`` of :class:`~spit.segmentation.cut.Cut`. In a tie, values stay as they are.

    Shape:
        values ``(ΣN,)`` to ``(ΣN,)``.
    """
    if rule == "largest":
        return values
    masks = seen.paint(values > 0)
    flip = _by_border(masks) if rule == "border" else _by_class_token(seen, masks)
    return torch.where(flip[seen.tokens.image_of], -values, values)


def _by_border(masks: list[Tensor]) -> Tensor:
    """Whether the positive side has more than half of the image's border.

    Shape:
        one ``(h, w)`` bool an image to ``(B,)`` bool.
    """
    rims = [torch.cat([mask[0], mask[-1], mask[1:-1, 0], mask[1:-1, -1]]) for mask in masks]
    return torch.stack([2 * rim.sum() > len(rim) for rim in rims])


def _by_class_token(seen: ForwardPass, masks: list[Tensor]) -> Tensor:
    """Whether the class token of the negative side alone is nearer to the whole image's (App. E).

    App. E says "class tokens (produced given the saliency mask)". Here the mask covers pixels with the image's mean
    colour; dropping the tokens of one side instead was right less often (docs/segmentation.md).

    Shape:
        one ``(h, w)`` bool an image to ``(B,)`` bool.
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
