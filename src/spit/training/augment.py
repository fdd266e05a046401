"""Augmentation of a whole batch on the training device (App. C).

This is our own because a step must be a function of (seed, step), however many processes share it, and kornia's draws
depend on the process; torchvision does not install beside the CPU build of torch. Random numbers are drawn on the CPU
for the global batch. Crop, flip and geometric operations are one affine map and one sampling; a colour operation runs
on the images that drew it. Nothing waits for the device.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.options import Options, documented, option
from spit.training.color import COLOR, THREE, change_colors, jitter_colors

POLICIES = ("none", "rand", "three")
GEOMETRY = ("rotate", "shear_x", "shear_y", "translate_x", "translate_y")
OPERATIONS = (*GEOMETRY, *COLOR)
GREATEST = 30  # the scale of RandAugment's magnitudes, as in torchvision
TRIES = 10  # candidates for a crop, as in torchvision
CUTS = 32  # CutMix boxes lie on a grid of this many cells a side


@documented
@dataclass(frozen=True)
class AugmentConfig(Options):
    """``[augment]``: how a batch is augmented."""

    scale: tuple[float, float] = option((0.08, 1.0), "Least and largest area of a crop, over the image's", above=0,
                                        most=1)
    ratio: tuple[float, float] = option((3 / 4, 4 / 3), "Least and largest width over height of a crop", above=0)
    flip: float = option(0.5, "Probability of a horizontal flip", least=0, most=1)
    policies: tuple[str, ...] = option(
        ("rand", "three"), "Policies, one of which each image draws: rand (RandAugment), three (3-Augment of DeiT III) "
                           "or none", choices=POLICIES)
    layers: int = option(2, "Operations of RandAugment for an image", least=0)
    magnitude: float = option(15.0, "Strength of RandAugment; 10 is light, 15 medium, 20 strong", least=0,
                              most=GREATEST)
    jitter: float = option(0.3, "Strength of 3-Augment's changes of brightness, contrast and saturation", least=0,
                           most=1)
    cutmix: float = option(1.0, "α of CutMix; 0 mixes nothing", least=0)
    cutmix_share: float = option(1.0, "Share of the pairs of images that are mixed", least=0, most=1)
    cutmix_policies: tuple[str, ...] = option(POLICIES, "Policies whose images are mixed", choices=POLICIES)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, (low, high) in (("scale", self.scale), ("ratio", self.ratio)):
            if low > high:
                raise ValueError(f"expected {name} as two rising numbers, got {(low, high)}")
        if not self.policies:
            raise ValueError("expected at least one policy, got none; policies = [\"none\"] changes nothing")


@dataclass(frozen=True)
class Draw:
    """The random numbers of a batch, row i for image i; ``draw[a:b]`` are those of a part of it.

    Shape:
        area, ratio ``(B, TRIES)``; place ``(B, 2)``; mirrored, bicubic ``(B,)`` bool; operation
        ``(B, layers)`` int64, −1 for none; strength ``(B, layers)`` in [−1, 1]; three ``(B,)`` int64, −1 for
        none; jitter ``(B, 3)`` factors; box ``(B, 4)`` as shares of the side (y0, x0, y1, x1).
    """

    area: Tensor
    ratio: Tensor
    place: Tensor
    mirrored: Tensor
    bicubic: Tensor
    operation: Tensor
    strength: Tensor
    three: Tensor
    jitter: Tensor
    box: Tensor

    def __len__(self) -> int:
        return len(self.area)

    def __getitem__(self, rows: slice) -> "Draw":
        return Draw(*(getattr(self, field.name)[rows] for field in fields(self)))

    def mix(self, images: Tensor) -> Tensor:
        """CutMix: replace a box of each image by that of its partner.

        Partners are images 0 and 1, 2 and 3, …; an odd last image has none. An empty box mixes nothing.
        """
        if not self.box.any():
            return images
        height, width = images.shape[-2:]
        box = self.box.to(images.device, non_blocking=True)[:, :, None, None]
        y = (torch.arange(height, device=images.device)[:, None] + 0.5) / height
        x = (torch.arange(width, device=images.device) + 0.5) / width
        cut = (y >= box[:, 0]) & (y < box[:, 2]) & (x >= box[:, 1]) & (x < box[:, 3])
        return torch.where(cut[:, None], images[self._partner(images.device)], images)

    def targets(self, labels: Tensor, num_classes: int, smoothing: float = 0.0) -> Tensor:
        """Soft targets: an image's class weighs its share of the pixels, its partner's class the rest.

        Shape:
            labels ``(B,)`` int64 to ``(B, num_classes)`` float32.
        """
        sides = self.box[:, 2:] - self.box[:, :2]
        share = (1 - sides[:, 0] * sides[:, 1]).to(labels.device, non_blocking=True)[:, None]
        own = F.one_hot(labels, num_classes).float() * (1 - smoothing) + smoothing / num_classes
        return share * own + (1 - share) * own[self._partner(labels.device)]

    def _partner(self, device: torch.device) -> Tensor:
        rows = torch.arange(len(self), device=device)
        return torch.where((rows ^ 1) < len(self), rows ^ 1, rows)


def draw(config: AugmentConfig, count: int, generator: torch.Generator) -> Draw:
    """Draw the random numbers for ``count`` images, on the CPU."""

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(count, *shape, generator=generator)

    policy = torch.randint(len(config.policies), (count,), generator=generator)
    rand, three, mixed = (torch.tensor([name in kinds for name in config.policies])[policy]
                          for kinds in (("rand",), ("three",), config.cutmix_policies))
    operation = torch.randint(len(OPERATIONS), (count, config.layers), generator=generator)
    sign = 2 * torch.randint(2, (count, config.layers), generator=generator) - 1
    chosen = torch.randint(len(THREE), (count,), generator=generator)
    jitter = uniform(1 - config.jitter, 1 + config.jitter, 3)
    return Draw(
        area=uniform(*config.scale, TRIES),
        ratio=uniform(math.log(config.ratio[0]), math.log(config.ratio[1]), TRIES).exp(),
        place=uniform(0, 1, 2),
        mirrored=uniform(0, 1) < config.flip,
        bicubic=uniform(0, 1) < 0.5,
        operation=torch.where(rand[:, None], operation, -1),
        strength=sign * config.magnitude / GREATEST,
        three=torch.where(three, chosen, -1),
        jitter=torch.where(three[:, None], jitter, 1),
        box=_boxes(config, count, generator) * mixed[:, None],
    )


def _boxes(config: AugmentConfig, count: int, generator: torch.Generator) -> Tensor:
    """CutMix boxes, the same for both of a pair: a share 1 − λ of the area, λ ~ Beta(α, α), at a random place."""
    boxes = torch.zeros(count, 4)
    pairs = count // 2
    if config.cutmix == 0 or pairs == 0:
        return boxes
    alpha = torch.full((2, pairs), float(config.cutmix))
    gamma = torch._standard_gamma(alpha, generator=generator)
    side = (1 - gamma[0] / gamma.sum(0)).sqrt()[:, None]
    middle = torch.rand(pairs, 2, generator=generator)
    mixed = torch.rand(pairs, 1, generator=generator) < config.cutmix_share
    corners = torch.cat([middle - side / 2, middle + side / 2], 1).clamp(0, 1)
    boxes[: 2 * pairs] = ((corners * CUTS).round() / CUTS * mixed).repeat_interleave(2, 0)
    return boxes


def apply(images: Tensor, aspects: Tensor, drawn: Draw, size: int, compiled: bool = False) -> Tensor:
    """Crop, flip and augment a batch.

    Args:
        images: whole images squashed to squares; the crop restores their aspect, width over height.
        compiled: fuse each operation with torch.compile; pixels may then differ by one level.

    Shape:
        images ``(B, C, S, S)`` uint8, aspects ``(B,)`` to ``(B, C, size, size)`` uint8.
    """
    sample = fused(_sample) if compiled else _sample
    change = fused(_change) if compiled else _change
    maps = _maps(aspects.float(), drawn)
    answer = torch.empty(len(images), images.shape[1], size, size, dtype=torch.uint8, device=images.device)
    for bicubic in (False, True):
        rows = _rows(drawn.bicubic == bicubic, images.device)
        if len(rows):
            answer[rows] = sample(images[rows], maps[rows], size, "bicubic" if bicubic else "bilinear")
    changes = [(drawn.operation[:, layer] == OPERATIONS.index(name), name, drawn.strength[:, layer])
               for layer in range(drawn.operation.shape[1]) for name in COLOR]
    changes += [(drawn.three == number, name, torch.ones(len(drawn))) for number, name in enumerate(THREE)]
    changes.append((drawn.three >= 0, "jitter", drawn.jitter))
    for drew, name, strength in changes:
        rows = _rows(drew, images.device)
        if len(rows):
            answer[rows] = change(name, answer[rows], strength[drew].to(images.device, non_blocking=True))
    return answer


@cache
def fused(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function, compiled to one kernel for any number of rows; results may differ in the last place."""
    compiled = torch.compile(function, dynamic=True)

    def call(*given: Any) -> Tensor:
        with torch._dynamo.config.patch(recompile_limit=32):  # a version for each operation and size
            return compiled(*given)

    return call


def _sample(images: Tensor, maps: Tensor, size: int, mode: str) -> Tensor:
    """Sample images under affine maps; grey outside them."""
    grids = F.affine_grid(maps, [len(images), 1, size, size], align_corners=False)
    pixels = F.grid_sample(images.float(), grids, mode=mode, padding_mode="border", align_corners=False)
    beyond = (grids.abs() > 1).any(-1)
    return _to_bytes(pixels / 255).masked_fill(beyond[:, None], 128)


def _change(name: str, images: Tensor, strength: Tensor) -> Tensor:
    pixels = images.float() / 255
    return _to_bytes(jitter_colors(pixels, strength) if name == "jitter" else change_colors(name, pixels, strength))


def _to_bytes(pixels: Tensor) -> Tensor:
    return (pixels.clamp(0, 1) * 255).round().to(torch.uint8)


def _rows(mask: Tensor, device: torch.device) -> Tensor:
    return mask.nonzero().flatten().to(device, non_blocking=True)


def _maps(aspects: Tensor, drawn: Draw) -> Tensor:
    """Affine maps from the result's square [−1, 1]² to the source's: operations, flip, crop. Shape: ``(B, 2, 3)``."""
    device = aspects.device
    total = torch.eye(3, device=device).repeat(len(aspects), 1, 1)
    for layer in range(drawn.operation.shape[1]):
        total = total @ _geometry(drawn.operation[:, layer], drawn.strength[:, layer]).to(device, non_blocking=True)
    crop = torch.zeros_like(total)
    width, height = _crop(aspects, drawn)
    place = drawn.place.to(device, non_blocking=True)
    crop[:, 0, 0] = width * (1 - 2 * drawn.mirrored.float()).to(device, non_blocking=True)
    crop[:, 1, 1] = height
    crop[:, 0, 2] = (2 * place[:, 0] - 1) * (1 - width)
    crop[:, 1, 2] = (2 * place[:, 1] - 1) * (1 - height)
    crop[:, 2, 2] = 1
    return (crop @ total)[:, :2]


def _crop(aspects: Tensor, drawn: Draw) -> tuple[Tensor, Tensor]:
    """Width and height of each crop as shares of the image's: the first try that fits, or the first try shrunk."""
    area, ratio = (x.to(aspects.device, non_blocking=True) for x in (drawn.area, drawn.ratio))
    width = (area * ratio / aspects[:, None]).sqrt()
    height = (area / ratio * aspects[:, None]).sqrt()
    fits = (width <= 1) & (height <= 1)
    first = fits.float().argmax(1, keepdim=True)
    width, height = width.gather(1, first)[:, 0], height.gather(1, first)[:, 0]
    shrink = torch.maximum(width, height).clamp_min(1)
    return width / shrink, height / shrink


def _geometry(operation: Tensor, strength: Tensor) -> Tensor:
    """Affine maps of the geometric operations; strength 1 is 30°, a shear of 0.3, or a shift of 0.45 sides."""
    maps = torch.eye(3).repeat(len(operation), 1, 1)
    angle = torch.where(operation == GEOMETRY.index("rotate"), strength * math.pi / 6, 0)
    maps[:, 0, 0], maps[:, 0, 1] = angle.cos(), -angle.sin()
    maps[:, 1, 0], maps[:, 1, 1] = angle.sin(), angle.cos()
    maps[:, 0, 1] += torch.where(operation == GEOMETRY.index("shear_x"), 0.3 * strength, 0)
    maps[:, 1, 0] += torch.where(operation == GEOMETRY.index("shear_y"), 0.3 * strength, 0)
    maps[:, 0, 2] = torch.where(operation == GEOMETRY.index("translate_x"), 2 * 0.45 * strength, 0)
    maps[:, 1, 2] = torch.where(operation == GEOMETRY.index("translate_y"), 2 * 0.45 * strength, 0)
    return maps
