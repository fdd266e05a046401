"""What every arrow accepts as images, checked once.

A user gives one batch tensor or a list of images of different sizes. Inside, both are a list of
*blocks*: runs of neighbouring images of one size, each a ``(B, C, H, W)`` tensor. Nothing here
writes to its input.
"""

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor

Images = Tensor | Sequence[Tensor]


class ImageBlocks(tuple[Tensor, ...]):
    """Images that :func:`image_blocks` has checked; it takes them again as they are."""


def image_blocks(images: Images) -> ImageBlocks:
    """Split images into blocks of one size, in order, without copying pixels twice.

    Args:
        images: ``(B, C, H, W)``, one ``(C, H, W)``, or a sequence of ``(C, H, W)``; uint8, or
            floats in [0, 1].

    Shape:
        Each block is ``(b, C, H, W)``; the b add up to the number of images.

    Raises:
        TypeError: not tensors, or a dtype that is neither uint8 nor floating.
        ValueError: a wrong number of dimensions, no pixels, NaN, or floats outside [0, 1].
    """
    if isinstance(images, ImageBlocks):
        return images
    if isinstance(images, Tensor):
        blocks = [images[None] if images.ndim == 3 else images]
    elif isinstance(images, Sequence) and not isinstance(images, str | bytes):
        for image in images:
            if not isinstance(image, Tensor):
                raise TypeError(f"expected tensors in the list of images, got {type(image).__name__}; "
                                "spit.load_image(path) reads a file")
            if image.ndim != 3:
                raise ValueError(f"expected (C, H, W) images in the list, got shape {tuple(image.shape)}")
        runs = groupby(images, key=lambda image: (image.shape, image.dtype, image.device))
        blocks = [torch.stack(list(run)) for _, run in runs]
    else:
        raise TypeError(f"expected a (B, C, H, W) tensor or a list of (C, H, W) tensors, "
                        f"got {type(images).__name__}; spit.load_image(path) reads a file")
    if not blocks:
        raise ValueError("expected at least one image, got an empty list")
    for block in blocks:
        _check(block)
    return ImageBlocks(blocks)


def quantize(block: Tensor) -> Tensor:
    """The image in 8 bits, as every tokenizer sees it: uint8 as it is, floats rounded to k/255.

    Shape:
        ``(B, C, H, W)`` to ``(B, C, H, W)`` uint8.
    """
    if block.dtype == torch.uint8:
        return block
    return (block.float() * 255).round_().to(torch.uint8)


def to_float(block: Tensor) -> Tensor:
    """The image as float32 in [0, 1]; differentiable where the input is floating."""
    return block.float() / 255 if block.dtype == torch.uint8 else block.float()


def _check(block: Tensor) -> None:
    shape = tuple(block.shape)
    if block.ndim != 4:
        raise ValueError(f"expected images of shape (B, C, H, W) or (C, H, W), got {shape}")
    if 0 in shape:
        raise ValueError(f"expected images with at least one pixel and channel, got shape {shape}")
    if block.shape[-1] in (3, 4) and block.shape[1] > 4:
        raise ValueError(f"expected channels first, (B, C, H, W), got {shape}; "
                         "call images.movedim(-1, 1) if the channels are last")
    if block.dtype == torch.uint8:
        return
    if not block.is_floating_point():
        raise TypeError(f"expected uint8 or floating images, got {block.dtype}; convert with .to(torch.uint8)")
    if block.is_meta:  # no pixels to look at; the kernels refuse the device by name
        return
    low, high = (bound.item() for bound in torch.aminmax(block.detach()))
    if not (low >= 0 and high <= 1):  # NaN fails both comparisons
        raise ValueError(f"expected float images in [0, 1], got values from {low:.4g} to {high:.4g}; "
                         "give raw pixels (no mean/std), or call .nan_to_num().clamp(0, 1)")
