"""The images that every arrow accepts, checked once.

A user gives one batch tensor or a list of images of different sizes. Internally both are *blocks*: consecutive
images of one size, each block a ``(B, C, H, W)`` tensor. Inputs are never modified.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from spit.ranges import check_range

Images = Tensor | Sequence[Tensor]

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class ImageBlocks(tuple[Tensor, ...]):
    """Images that :func:`image_blocks` has checked; given again, they pass unchecked."""


def image_blocks(images: Images) -> ImageBlocks:
    """Check images and split them into blocks of one size, in order.

    Args:
        images: ``(B, C, H, W)``, one ``(C, H, W)``, or a sequence of ``(C, H, W)``; uint8, or floats in [0, 1]
            up to rounding.

    Shape:
        Blocks ``(b, C, H, W)``, where the b add up to the number of images.
    """
    if isinstance(images, ImageBlocks):
        return images
    if isinstance(images, Tensor):
        blocks = [images[None] if images.ndim == 3 else images]
    elif isinstance(images, Sequence) and not isinstance(images, str | bytes):
        for image in images:
            if not isinstance(image, Tensor):
                raise TypeError(f"expected tensors in the list of images, got {type(image).__name__}; "
                                f"{conversion(image)}")
            if image.ndim != 3:
                raise ValueError(f"expected (C, H, W) images in the list, got shape {tuple(image.shape)}"
                                 f"{_missing_channel(image)}")
        runs = groupby(images, key=lambda image: (image.shape, image.dtype, image.device))
        blocks = [torch.stack(list(run)) for _, run in runs]
    else:
        raise TypeError(f"expected a (B, C, H, W) or (C, H, W) tensor, or a list of (C, H, W) tensors, "
                        f"got {type(images).__name__}; {conversion(images)}")
    if not blocks:
        raise ValueError("expected at least one image, got an empty list")
    for block in blocks:
        _check(block)
    return ImageBlocks(blocks)


def quantize(block: Tensor) -> Tensor:
    """The image in 8 bits, as tokenizers see it: uint8 unchanged, floats times 255, rounded and clamped.

    Shape:
        ``(B, C, H, W)`` to ``(B, C, H, W)`` uint8.
    """
    if block.dtype == torch.uint8:
        return block
    return (block.float() * 255).round_().clamp_(0, 255).to(torch.uint8)


def to_float(block: Tensor) -> Tensor:
    """The image as float32 in [0, 1]; differentiable where the input is floating."""
    return block.float() / 255 if block.dtype == torch.uint8 else block.float()


def _check(block: Tensor) -> None:
    shape = tuple(block.shape)
    if block.ndim != 4:
        raise ValueError(f"expected images of shape (B, C, H, W) or (C, H, W), got {shape}{_missing_channel(block)}")
    if 0 in shape:
        raise ValueError(f"expected images with at least one pixel and channel, got shape {shape}")
    if block.shape[-1] in (3, 4) and block.shape[1] > 4:
        raise ValueError(f"expected channels first, (B, C, H, W), got {shape}; "
                         "call .movedim(-1, -3) if the channels are last")
    if block.dtype == torch.uint8:
        return
    if not block.is_floating_point():
        raise TypeError(f"expected uint8 or floating images, got {block.dtype}; convert with .to(torch.uint8)")
    if block.is_meta:  # it has no pixels; the kernels refuse the device by name
        return
    if block.dtype not in FLOATS:  # torch computes nothing in 8 bits and fewer
        raise TypeError(f"expected uint8, half, bfloat16, float or double images, got {block.dtype}; convert with "
                        ".float()")
    low, high = (bound.item() for bound in torch.aminmax(block.detach()))
    check_range(low, high, torch.finfo(block.dtype).eps)


def conversion(images: object) -> str:
    """How to convert an image of another type to a tensor."""
    if isinstance(images, np.ndarray):
        if images.dtype == np.uint16:
            return "convert it with (image / 65535).astype('float32') if its white is 65535"
        if images.dtype != np.uint8 and not np.issubdtype(images.dtype, np.floating):
            return "convert it with image.astype('uint8') if it has values from 0 to 255"
        if images.shape[-1:] == (4,):
            return "it has 4 channels: leave out the alpha with image[..., :3]"
        return "convert it with torch.from_numpy(image), and .movedim(-1, -3) if the channels are last"
    if type(images).__module__.startswith("PIL."):
        return ("convert it with torch.from_numpy(numpy.array(image.convert('RGB'))).movedim(-1, 0), "
                "or read the file with spit.load_image(path)")
    return "spit.load_image(path) reads a file"


def _missing_channel(image: Tensor) -> str:
    return "; add a channel with x[None]" if image.ndim == 2 else ""
