"""Images with masks of their salient objects: ECSSD, DUTS, DUT-OMRON, Oxford Pets, or any two folders.

::

    images/…/cat.jpg                 any format that spit.load_image reads, at any depth
    ground_truth_mask/…/cat.png      a mask of the same name; LAYOUTS has the known folders

A mask is read by its grey values; of a colour the brightest channel counts:

- only 0 and 1: 1 is the foreground;
- only 1, 2 and 3, with a 2: a trimap, 1 the foreground, 2 the background, 3 not counted (Oxford Pets);
- values beyond 127: above 127 is the foreground (JPEG masks, and soft edges);
- anything else is refused, since the meaning of 0, 1 and 2 is not known.

A mask of another size is resized by the nearest pixel if its aspect agrees to 2 %, and refused otherwise.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spit.data.folders import image_paths
from spit.data.images import load_image
from spit.errors import ImageError
from spit.evaluation.samples import Sample
from spit.options import Options, option

LAYOUTS = (  # images, masks
    ("images", "ground_truth_mask"),  # ECSSD
    ("images", "masks"),
    ("images", "annotations/trimaps"),  # Oxford Pets
    ("DUTS-TE-Image", "DUTS-TE-Mask"),
    ("DUTS-TR-Image", "DUTS-TR-Mask"),
    ("DUT-OMRON-image", "pixelwiseGT-new-PNG"),
    ("imgs", "gt"),
)
HALF = 127
ASPECT = 0.02


@dataclass(frozen=True)
class Truth:
    """What people marked.

    Shape:
        foreground and counted ``(H, W)`` bool; figures are over counted pixels only.
    """

    foreground: NDArray[np.bool_]
    counted: NDArray[np.bool_]


@dataclass(frozen=True)
class MaskFolders(Options):
    """Where images and masks are, and which of them to take."""

    image_folder: str | None = option(None, "Folder of images below --data, with --mask-folder (default: that of a "
                                            "known layout)", metavar="NAME")
    mask_folder: str | None = option(None, "Folder of masks below --data, with --image-folder", metavar="NAME")
    first: int | None = option(None, "Only the first so many images, to tune on", least=1)


def find_samples(data: Path, options: MaskFolders = MaskFolders()) -> list[Sample]:  # noqa: B008
    """The images of a folder in order, each with its mask; the name is the path below the images, without a suffix.

    Raises:
        ImageError: no such folders, no images, or an image without a mask.
        ValueError: one of the two folders without the other.
    """
    images, masks = options.image_folder, options.mask_folder
    if (images is None) != (masks is None):
        raise ValueError("--image-folder and --mask-folder go together: give both, or neither")
    if images is None or masks is None:
        images, masks = _layout(data)
    found = {path.relative_to(data / masks).with_suffix("").as_posix(): path for path in image_paths(data / masks)}
    samples = []
    for path in image_paths(data / images)[: options.first]:
        name = path.relative_to(data / images).with_suffix("").as_posix()
        if name not in found:
            raise ImageError(f"{path}: expected its mask below {data / masks}, of the same name, found none")
        samples.append(Sample(name, path, (found[name],)))
    return samples


def read_pair(sample: Sample) -> tuple[Tensor, Truth]:
    """The image, ``(3, H, W)`` uint8, and its truth at the same size.

    Raises:
        ImageError: a file is damaged, or the mask is none of what this module describes.
    """
    image = load_image(sample.image)
    return image, read_mask(sample.truths[0], (image.shape[1], image.shape[2]))


def read_mask(path: Path, size: tuple[int, int]) -> Truth:
    """A mask file at the size ``(H, W)`` of its image.

    Raises:
        ImageError: damaged, of another aspect, or with values that this module does not describe.
    """
    grey = load_image(path).amax(0).numpy()
    height, width = grey.shape
    if (height, width) != size:
        if abs(height * size[1] / (width * size[0]) - 1) > ASPECT:
            raise ImageError(f"{path}: expected a mask of its image's {size[1]} × {size[0]} pixels or of that aspect, "
                             f"got {width} × {height}")
        rows, columns = ((2 * np.arange(wanted) + 1) * present // (2 * wanted)
                         for wanted, present in zip(size, grey.shape, strict=True))
        grey = grey[rows][:, columns]
    values = np.unique(grey)
    everywhere = np.ones(size, dtype=bool)
    if values[-1] <= 1:
        return Truth(grey == 1, everywhere)
    if values[-1] > HALF:
        return Truth(grey > HALF, everywhere)
    if values[0] >= 1 and values[-1] <= 3 and 2 in values:
        return Truth(grey == 1, grey != 3)
    raise ImageError(f"{path}: expected a mask of 0 and 1, of 0 to 255, or a trimap of 1, 2 and 3, got values "
                     f"{', '.join(map(str, values[:8].tolist()))}{', …' if len(values) > 8 else ''}")


def _layout(data: Path) -> tuple[str, str]:
    if not data.is_dir():
        raise ImageError(f"{data}: expected a folder of images and masks, but there is none; check the path")
    for images, masks in LAYOUTS:
        if (data / images).is_dir() and (data / masks).is_dir():
            return images, masks
    pairs = "; ".join(f"{images}/ and {masks}/" for images, masks in LAYOUTS)
    raise ImageError(f"{data}: expected one of these pairs of folders in it: {pairs}; name others with "
                     "--image-folder and --mask-folder")
