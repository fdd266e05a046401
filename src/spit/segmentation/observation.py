"""What the cut reads of a model: one pass through the five arrows, images in the sizes that were asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.backbone import Heads, Recorder, Spans
from spit.embedder import take_class_token
from spit.images import Images, image_blocks, to_float
from spit.model import SpitModel
from spit.partition import Partition
from spit.segmentation.cut import Cut
from spit.tokens import Tokens


@dataclass(frozen=True)
class Observation:
    """A pass of some images.

    Attributes:
        images: as the model saw them.
        partition: τ's answer on those.
        tokens: what leaves f, class tokens apart.
        compared: what the cut compares, tokens or keys of a layer; one row for each of ``tokens``.
        class_token: of each image.

    Shape:
        images ``(3, h, w)`` each, tokens and compared ``(ΣN, D)``, class_token ``(B, D)``.
    """

    images: tuple[Tensor, ...]
    partition: Partition
    tokens: Tokens
    compared: Tokens
    class_token: Tensor


def observe(model: SpitModel, images: Sequence[Tensor], cut: Cut) -> Observation:
    """Run a model and keep what the cut needs.

    Shape:
        images ``(3, H, W)`` each.
    """
    layer = cut.layer_of(model.config.depth)
    kept: list[Tensor] = []

    def keep_keys(at: int, spans: Spans, heads: Heads) -> None:
        if at == layer:
            kept.append(heads.key.flatten(1))

    seen = tuple(images) if cut.size is None else tuple(resize(image, cut.size) for image in images)
    last = layer == model.config.depth - 1
    wanted: dict[str, tuple[int, ...]] = {} if cut.features == "keys" or last else {"features": (layer,)}
    recorder = Recorder(wanted, observe=keep_keys if cut.features == "keys" else None)
    output = model(seen, record=recorder)
    compared = output.tokens
    if cut.features == "keys":
        offsets = output.tokens.offsets + torch.arange(len(seen) + 1, device=output.tokens.offsets.device)
        compared = take_class_token(Tokens(kept[0], offsets))[1]
    elif not last:
        rows = output.features[layer]
        compared = take_class_token(rows.replace(model.backbone.norm(rows.values)))[1]
    return Observation(seen, output.partition, output.tokens, compared, output.class_token)


def check_model(model: SpitModel) -> None:
    """Refuse what would give another answer each time."""
    if not isinstance(model, SpitModel):
        raise TypeError(f"expected a model of spit, got {type(model).__name__}; spit.create_model and spit.from_timm "
                        "make one")
    if model.training:
        raise ValueError("expected a model in evaluation mode, since training drops tokens and layers at random; "
                         "call model.eval()")


def parts_of(images: Images) -> Iterator[list[Tensor]]:
    """The images, checked, in the runs that are worked on at once.

    On a CPU one image at a time: a batch is no faster there, and so the same image has the same answer to
    the last bit whatever is beside it. On a GPU all at once.
    """
    singles = [image for block in image_blocks(images) for image in block]
    return ([image] for image in singles) if singles[0].device.type == "cpu" else iter([singles])


def resize(image: Tensor, size: int) -> Tensor:
    """The shorter side made ``size``, the aspect kept, bilinear without aliasing; floats in [0, 1].

    Shape:
        ``(C, H, W)`` to ``(C, h, w)`` float32.
    """
    height, width = image.shape[1:]
    scaled = [max(1, round(side * size / min(height, width))) for side in (height, width)]
    if scaled == [height, width]:
        return image
    floats = to_float(image[None])
    return F.interpolate(floats, scaled, mode="bilinear", antialias=True).clamp(0, 1)[0]


def maps_of(partition: Partition, values: Tensor, images: Sequence[Tensor]) -> list[Tensor]:
    """Each image's values at its own pixels: painted, and where the model saw another size, by the nearest pixel.

    Shape:
        values ``(ΣN, ...)``; one ``(H, W, ...)`` for each image ``(3, H, W)``.
    """
    maps = []
    for painted, image in zip(partition.paint(values), images, strict=True):
        if painted.shape[:2] != image.shape[1:]:
            rows, columns = (_nearest(there, here, painted.device)
                             for there, here in zip(image.shape[1:], painted.shape[:2], strict=True))
            painted = painted[rows][:, columns]
        maps.append(painted)
    return maps


def join(maps: Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """``(B, H, W, ...)``, or a tuple of ``(H, W, ...)`` where sizes differ."""
    return torch.stack(list(maps)) if len({image.shape for image in maps}) == 1 else tuple(maps)


def _nearest(wanted: int, present: int, device: torch.device) -> Tensor:
    """For each of ``wanted`` pixels the one of ``present`` that its centre lies in."""
    return (2 * torch.arange(wanted, device=device) + 1) * present // (2 * wanted)
