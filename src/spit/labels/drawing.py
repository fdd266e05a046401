"""The borders of a label map on its image."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spit.bands import eight_bits
from spit.kernels import Array
from spit.labels.numbering import bands, number
from spit.labels.regions import statistics

YELLOW = (255, 255, 0)  # as skimage.segmentation.mark_boundaries draws them


def draw(image: npt.ArrayLike, labels: npt.ArrayLike, *, color: Sequence[int] | None = YELLOW, thickness: int = 1,
         fill: bool = False, background: int | None = 0) -> npt.NDArray[np.uint8]:
    """Draw the borders of regions, like ``skimage.segmentation.mark_boundaries``, in an RGB copy of the image.

    Args:
        image: ``(H, W)`` grey or ``(H, W, C)`` of 1 or 3 channels; bool, uint8, uint16, or floats in [0, 1].
        labels: any integers, ``(H, W)``.
        color: red, green and blue of the borders, 0 to 255; None for no borders.
        thickness: of the borders in pixels.
        fill: give every region its mean colour first; background stays as it is.
        background: label of pixels that belong to no region; None if there is none. It has a border too.

    Returns:
        ``(H, W, 3)`` uint8.

    Raises:
        TypeError: labels are not integers, or the image has another type.
        ValueError: labels or image have another shape, or floats leave [0, 1].

    Example:
        >>> import spit
        >>> from skimage.data import chelsea
        >>> labels = spit.superpixels(chelsea(), n=200)
        >>> picture = spit.draw(chelsea(), labels, fill=True)
        >>> picture.shape, picture.dtype
        ((300, 451, 3), dtype('uint8'))
    """
    if thickness < 1:
        raise ValueError(f"expected a thickness of at least 1 pixel, got {thickness}")
    numbers = number(labels, background)[1]
    drawn = _picture(image, numbers.shape)
    if fill:
        means, _ = statistics(numbers, drawn, np.bincount(numbers.ravel()))
        inside = numbers > 0
        drawn[inside] = np.rint(means).astype(np.uint8)[numbers[inside] - 1]
    if color is not None:
        line = np.zeros(numbers.shape, bool)
        for axis in (0, 1):
            here, there = line.swapaxes(0, axis), numbers.swapaxes(0, axis)
            edge = there[:-1] != there[1:]
            for step in range(min(thickness, len(there))):  # half of the line on either side
                shift = (step + 1) // 2 if step % 2 else -(step // 2)
                first, last = max(shift, 0), min(len(edge) + shift, len(here))
                here[first:last] |= edge[first - shift : last - shift]
        drawn[line] = color
    return drawn


def _picture(image: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    """A copy of the image as ``(H, W, 3)`` uint8."""
    pixels = bands(image, shape)
    if pixels.shape[-1] not in (1, 3):
        raise ValueError(f"expected an image of 1 or 3 channels, got {pixels.shape[-1]}; image[..., :3] takes three")
    return np.repeat(eight_bits(pixels), 3 // pixels.shape[-1], -1)
