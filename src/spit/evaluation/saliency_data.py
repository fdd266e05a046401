"""Images with masks of what is salient in them: ECSSD, DUTS, DUT-OMRON, Oxford Pets, or any two folders.

::

    images/…/cat.jpg                 any format that spit.load_image reads, at any depth
    ground_truth_mask/…/cat.png      a mask of the same name; see LAYOUTS for the folders that are looked for

A mask is read by its grey values, of a colour the brightest channel:

- 0 and 1 alone: 1 is the foreground;
- 1, 2 and 3 alone, with a 2: a trimap, 1 the foreground, 2 the background, 3 counted nowhere (Oxford Pets);
- anything that reaches beyond 127: above 127 is the foreground (JPEG masks, and soft edges);
- else the mask is refused: no rule tells what 0, 1 and 2 mean.

Another size than the image's is brought to it by the nearest pixel where the aspect agrees to 2 %, and refused
elsewhere.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from spit.data.folders import image_paths
from spit.data.images import load_image
from spit.errors import ImageError

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
        foreground and counted ``(H, W)`` bool; pixels that are not counted are in no figure.
    """

    foreground: NDArray[np.bool_]
    counted: NDArray[np.bool_]


@dataclass(frozen=True)
class Sample:
    """An image file and its mask file; the name is the path below the images, without a suffix."""

    name: str
    image: Path
    mask: Path

    def size(self) -> tuple[int, int]:
        """Width and height as the file's head has them; 0 where it has none, of which :meth:`read` will tell."""
        try:
            with Image.open(self.image) as image:
                return image.size
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            return 0, 0

    def read(self) -> tuple[Tensor, Truth]:
        """The image, ``(3, H, W)`` uint8, and its truth at the same size.

        Raises:
            ImageError: a file is damaged, or the mask is none of what this module describes.
        """
        image = load_image(self.image)
        return image, read_mask(self.mask, (image.shape[1], image.shape[2]))


def find_samples(data: Path, images: str | None = None, masks: str | None = None) -> list[Sample]:
    """The images of a folder in order, each with its mask.

    Args:
        images, masks: folders below ``data``; those of the first of ``LAYOUTS`` that is there unless told.

    Raises:
        ImageError: no such folders, no images, or an image without a mask.
    """
    if (images is None) != (masks is None):
        raise ValueError("--images and --masks go together: both folders, or neither")
    if images is None or masks is None:
        images, masks = _layout(data)
    found = {path.relative_to(data / masks).with_suffix("").as_posix(): path for path in image_paths(data / masks)}
    samples = []
    for path in image_paths(data / images):
        name = path.relative_to(data / images).with_suffix("").as_posix()
        if name not in found:
            raise ImageError(f"{path}: expected its mask below {data / masks}, of the same name, found none")
        samples.append(Sample(name, path, found[name]))
    return samples


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
    raise ImageError(f"{data}: expected one of these pairs of folders in it: {pairs}; name others with --images and "
                     "--masks")
