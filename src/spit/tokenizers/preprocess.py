"""The features that superpixels are made from (App. B): contrast, then anisotropic diffusion.

They are integers, ±SCALE for ±1, computed from 8-bit pixels by tables and integer arithmetic, so that all
devices get the same values. φ uses the same contrast, but no diffusion.
"""

from torch import Tensor

from spit import kernels
from spit.images import quantize
from spit.kernels.options import Features


def superpixel_features(block: Tensor, features: Features) -> Tensor:
    """The features that the superpixel tokenizer compares.

    ``"paper"``: the channels with contrast, diffused. ``"saturated"``: the same with the saturation of the authors'
    release before the diffusion; objects differ in hue more than in brightness, so that regions follow them better
    (docs/superpixels.md). A grey image counts as RGB with three equal channels.

    Shape:
        ``(B, C, H, W)`` image to ``(B, C', H, W)`` int16.
    """
    pixels = quantize(block)
    if features != "paper" or pixels.shape[1] == 1:
        pixels = rgb(pixels, f"features={features!r}")
    return kernels.superpixel_features(pixels, features == "saturated")


def rgb(pixels: Tensor, what: str) -> Tensor:
    """Images of one or three channels as three; ValueError for another number."""
    if pixels.shape[1] == 1:
        return pixels.expand(-1, 3, -1, -1)
    if pixels.shape[1] != 3:
        raise ValueError(f"{what} needs images with 1 or 3 channels, got {pixels.shape[1]}; "
                         "superpixels with features='paper' take any number")
    return pixels
