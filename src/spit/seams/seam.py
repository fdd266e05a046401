"""Seam: where tokens enter one family of vision transformers, read from its public attributes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from spit.kernels.tables import IMAGENET_MEAN, IMAGENET_STD
from spit.seams.names import NAMES

Grid = tuple[int, int]  # rows and columns of patches


class Seam(ABC):
    """One module of a family, and how tokens go through it with its own weights.

    A seam reads the module and never changes it. :func:`spit.wrap` compares the module with itself on square patches,
    so a seam that reads it wrongly is refused when it is made.

    Attributes:
        module: the backbone.
        patch: side of its patches in pixels.
        channels: of its images.
        size: height and width of the images it was made for.
        width: columns D of a token.
        heads: attention heads of a block.
        num_classes: logits of its head; 0 if it has none.
        prefix: tokens before those of the image: class token, distillation token, registers.
        reads_class: whether the head reads the first of them alone.
        mean: of the colours that it expects, in [0, 1], with their standard deviation ``std``.
        class_names: of its classes, if the module knows them.
    """

    module: Any
    patch: int
    channels: int
    size: Grid
    width: int
    heads: int
    num_classes: int
    prefix: int
    reads_class: bool
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    class_names: tuple[str, ...] = ()
    crop: float | None = 0.875  # share of the short side that the central square takes at evaluation
    biased: bool = False  # attention has a bias for each pair of cells

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    @property
    def grid(self) -> Grid:
        """The patches of an image of the module's own size."""
        return self.size[0] // self.patch, self.size[1] // self.patch

    @property
    def summary_width(self) -> int:
        """Columns of what the head reads."""
        return self.width

    @property
    def linear(self) -> nn.Linear | None:
        """The head, if it is one linear layer."""
        return None

    @property
    @abstractmethod
    def blocks(self) -> Sequence[nn.Module]:
        """The attention blocks."""

    @property
    @abstractmethod
    def norm(self) -> nn.Module:
        """The final norm."""

    @abstractmethod
    def embed(self, patches: Tensor) -> Tensor:
        """The patch embedding without positions, ``(N, C·p·p)``, channel by channel, to ``(N, D)``."""

    @abstractmethod
    def prefix_rows(self) -> Tensor:
        """The tokens before those of the image, with their positions, ``(prefix, D)``."""

    def positions(self, grid: Grid) -> Tensor | None:
        """The table of positions that is added to patches, resampled to a grid, ``(cells, D)``."""
        return None

    def rotation(self, grid: Grid) -> Tensor | None:
        """Sines and cosines of the rotary positions of a grid, ``(layers, heads, cells, 2, d)``.

        Layers and heads are 1 where they share them; the cells may be those of the module's own grid.
        """
        return None

    def enter(self, rows: Tensor) -> Tensor:
        """What happens between positions and the first block, ``(B, N, D)``."""
        return rows

    def run(self, block: nn.Module, rows: Tensor, rotation: Tensor | None) -> Tensor:
        """One block, ``(B, N, D)``; ``rotation`` is ``(B, heads, N − prefix, 2, d)``."""
        answer: Tensor = block(rows)
        return answer

    @abstractmethod
    def summarize(self, rows: Tensor) -> Tensor:
        """What the head reads of tokens after the final norm, ``(B, N, D)`` to ``(B, summary_width)``."""

    @abstractmethod
    def classify(self, summary: Tensor) -> Tensor:
        """The module's head, ``(B, summary_width)`` to ``(B, num_classes)``; the summary itself if it has none."""

    @abstractmethod
    def answer(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        """What the module itself makes of normalised images: its final tokens, ``(B, N, D)``, and its logits."""

    def source_options(self) -> dict[str, Any]:
        """``source`` and ``options`` that make the module again, as JSON has them; empty if that is not known."""
        return {}


SEAMS: dict[str, str | type[Seam]] = {
    "timm.models.vision_transformer.VisionTransformer": "spit.seams.timm.TimmViT",
    "timm.models.deit.VisionTransformerDistilled": "spit.seams.timm.TimmDistilled",
    "timm.models.eva.Eva": "spit.seams.timm.TimmEva",
    "timm.models.beit.Beit": "spit.seams.timm.TimmBeit",
    **{f"transformers.models.{names.file}.{name}": f"spit.seams.transformers.{names.seam}"
       for name, names in NAMES.items()},
    **{f"transformers.models.timm_wrapper.modeling_timm_wrapper.{name}": "spit.seams.transformers.timm_inside"
       for name in ("TimmWrapperModel", "TimmWrapperForImageClassification")},
    "torchvision.models.vision_transformer.VisionTransformer": "spit.seams.others.TorchvisionViT",
    "open_clip.transformer.VisionTransformer": "spit.seams.others.OpenClipViT",
    "dinov2.models.vision_transformer.DinoVisionTransformer": "spit.seams.others.HubDinov2",
    "dinov3.models.vision_transformer.DinoVisionTransformer": "spit.seams.others.HubDinov3",
}
"""Seams by the full name of the module's class."""


def register_seam(cls: type[nn.Module] | str, seam: type[Seam]) -> type[Seam]:
    """Teach :func:`spit.wrap` another family of backbones.

    Args:
        cls: the class of its modules, which covers its subclasses, or its full name, ``package.module.Class``.
        seam: a class that derives from :class:`spit.seams.Seam`; its constructor takes the module.

    Example:
        >>> import spit, torch
        >>> from spit.seams import Seam
        >>> class Mixer(torch.nn.Module): ...
        >>> class MixerSeam(Seam): ...
        >>> _ = spit.register_seam(Mixer, MixerSeam)
    """
    if not isinstance(seam, type) or not issubclass(seam, Seam):
        raise TypeError(f"expected a class that derives from spit.seams.Seam, got {seam!r}")
    SEAMS[cls if isinstance(cls, str) else full_name(cls)] = seam
    return seam


def full_name(cls: type) -> str:
    """``package.module.Class``."""
    return f"{cls.__module__}.{cls.__qualname__}"


def find_seam(module: nn.Module) -> Seam:
    """The seam of a module, by its class or the nearest base class that has one."""
    for cls in type(module).__mro__:
        seam = SEAMS.get(full_name(cls))
        if isinstance(seam, str):
            package, _, name = seam.rpartition(".")
            seam = getattr(import_module(package), name)
        if seam is not None:
            return seam(module)
    inside = (name for name, one in module.named_modules() if any(full_name(cls) in SEAMS for cls in type(one).__mro__))
    if name := next(inside, ""):
        raise TypeError(f"no seam for {full_name(type(module))}, but for a part of it: spit.wrap(model.{name})")
    raise TypeError(f"no seam for {full_name(type(module))}: spit.wrap takes plain ViTs of timm and transformers "
                    "(docs/backbones.md lists them); for others, such as Swin or ConvNeXt, spit.pool(features, "
                    "partition) gives one vector a region, and spit.register_seam adds a family")


def square_side(name: str, value: Any) -> int:
    """The side of square patches; TypeError if they are not square."""
    sides = set(value) if isinstance(value, Iterable) else {value}
    if len(sides) != 1:
        raise TypeError(f"expected square patches, got {name} {tuple(value)}")
    return int(sides.pop())


def colors(described: Mapping[str, Any], key: str, default: tuple[float, ...]) -> tuple[float, ...]:
    """The mean or standard deviation that a library's configuration states."""
    return tuple(float(value) for value in described.get(key) or default)


def linear_patches(patches: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A convolution of patches with a stride of their side, as a product, ``(N, C·p·p)`` to ``(N, D)``."""
    return torch.nn.functional.linear(patches.to(weight.dtype), weight.flatten(1), bias)
