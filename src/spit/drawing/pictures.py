"""Pictures of an image's partition: boundaries or mean colours."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter
from PIL.PngImagePlugin import PngInfo
from torch import Tensor

from spit.images import quantize
from spit.partition import Partition

BRIGHT = 160  # luma from which a neighbourhood gets black lines, below it white ones
OPACITY = 0.6  # of the lines


def draw_overlay(image: Tensor, partition: Partition, thickness: int | None = None) -> Image.Image:
    """Draw translucent lines between regions, white on dark parts of the image and black on bright ones.

    Args:
        image: uint8, or floats in [0, 1], of 1 or 3 channels.
        partition: of that image alone.
        thickness: of the line in pixels (default: 1, and 1 more for every 1,500 pixels of the longer side, but not more
            than a twelfth of a region's width).

    Shape:
        image ``(C, H, W)``; the picture is W × H.
    """
    pixels = _pixels(image, partition)
    if thickness is None:
        width = (pixels.shape[0] * pixels.shape[1] / int(partition.counts[0])) ** 0.5
        thickness = max(1, min(1 + max(pixels.shape[:2]) // 1500, int(width / 12)))
    if thickness < 1:
        raise ValueError(f"expected a thickness of at least 1 pixel, got {thickness}")
    [edges] = partition.boundaries()
    # Each edge pixel grows to a square, in turn below and above, so that the line stays in place.
    line = grow(edges.cpu().numpy(), (thickness - 1) // 2, thickness // 2)
    # The neighbourhood decides, not the pixel: a line should not change its colour at every detail.
    radius = 2 + max(pixels.shape[:2]) // 50
    around = np.asarray(Image.fromarray(pixels).convert("L").filter(ImageFilter.BoxBlur(radius)))
    blended = (1 - OPACITY) * pixels + OPACITY * np.where(around >= BRIGHT, 0, 255)[:, :, None]
    return Image.fromarray(np.where(line[:, :, None], np.rint(blended).astype(np.uint8), pixels))


def draw_mean_colors(image: Tensor, partition: Partition) -> Image.Image:
    """Draw each region in its mean colour, rounded.

    Shape:
        image ``(C, H, W)``; the picture is W × H.
    """
    pixels = _pixels(image, partition)
    [labels] = partition.blocks[0].cpu().numpy()
    flat = labels.ravel()
    sizes = np.bincount(flat)
    means = np.stack([np.bincount(flat, channel.ravel()) / sizes for channel in np.moveaxis(pixels, 2, 0)], axis=1)
    return Image.fromarray(np.rint(means).astype(np.uint8)[labels])


def draw_labels(partition: Partition) -> Image.Image:
    """Draw each region of one image in a colour of its own number: any two near numbers differ clearly.

    A colour does not give the number back; :func:`spit.drawing.encode_labels` does.
    """
    if len(partition) != 1:
        raise ValueError(f"expected the partition of one image, got {len(partition)}; partition[i] is that of image i")
    numbers = np.arange(int(partition.counts[0]))
    # Hues by the golden ratio, which leaves no two of a run close; brightness and saturation in steps of other lengths.
    hue = np.modf(numbers * 0.6180339887498949)[0] * 6
    value, gray = 255 * (0.65 + 0.35 * (numbers % 5) / 4), 0.15 + 0.35 * (numbers % 3) / 2
    strength = np.clip(np.abs((hue[:, None] + np.array([0, 4, 2])) % 6 - 3) - 1, 0, 1)
    colors = np.rint(value[:, None] * (gray[:, None] + (1 - gray[:, None]) * strength)).astype(np.uint8)
    return Image.fromarray(colors[partition.blocks[0][0].cpu().numpy()])


def grow(mask: NDArray[np.bool_], before: int, after: int | None = None) -> NDArray[np.bool_]:
    """A mask grown by squares: so many pixels up and left, and ``after`` down and right (default: the same)."""
    grown = mask
    for axis in (0, 1):
        lines = grown.swapaxes(0, axis)
        wide = lines.copy()
        for step in range(1, min(len(lines) - 1, max(before, before if after is None else after)) + 1):
            if step <= before:
                wide[:-step] |= lines[step:]
            if step <= (before if after is None else after):
                wide[step:] |= lines[:-step]
        grown = wide.swapaxes(0, axis)
    return grown


def as_picture(image: Tensor) -> Image.Image:
    """A ``(C, H, W)`` image as a Pillow image."""
    pixels = quantize(image.detach()[None])[0].expand(3, -1, -1).permute(1, 2, 0)
    return Image.fromarray(np.ascontiguousarray(pixels.cpu().numpy()))


def encode_png(picture: Image.Image) -> bytes:
    """The picture as the bytes of a PNG file, which says that spit wrote it."""
    buffer, about = io.BytesIO(), PngInfo()
    about.add_text("Software", "spit")
    # Level 2 takes a quarter of level 6's time, and files of photos are 5 % larger.
    picture.save(buffer, "PNG", pnginfo=about, compress_level=2)
    return buffer.getvalue()


def _pixels(image: Tensor, partition: Partition) -> NDArray[np.uint8]:
    """The image as ``(H, W, 3)`` pixels; checks that the partition is of this image."""
    if image.ndim != 3 or image.shape[0] not in (1, 3):
        raise ValueError(f"expected one image of shape (3, H, W) or (1, H, W), got {tuple(image.shape)}")
    if len(partition) != 1:
        raise ValueError(f"expected the partition of one image, got {len(partition)}; partition[i] is that of image i")
    if partition.blocks[0].shape[1:] != image.shape[1:]:
        raise ValueError(f"expected the partition of this image of {tuple(image.shape[1:])} pixels, "
                         f"got labels of {tuple(partition.blocks[0].shape[1:])}")
    return np.asarray(as_picture(image))
