"""The values of float images, arrays or tensors: 0 is black and 1 is white."""

from math import isfinite

ROUNDING = 1e-4  # tolerance around [0, 1]: resizing can leave 1 + 2.4e-7


def check_range(low: float, high: float, eps: float) -> None:
    """Refuse an image whose values go from ``low`` to ``high``, of a dtype with this ``eps``, if they leave [0, 1]."""
    stray = max(ROUNDING, eps)
    if not (low >= -stray and high <= 1 + stray):  # NaN fails both comparisons
        raise ValueError(f"expected float images in [0, 1], got values from {low:.6g} to {high:.6g}; "
                         f"{_way_back(low, high)}")


def _way_back(low: float, high: float) -> str:
    """How to repair an image with these extremes, by what most likely happened to it."""
    if not (isfinite(low) and isfinite(high)):
        return "look for NaN or infinity where the images are made"
    if low >= -0.25 and high <= 1.25:
        return "call .clamp(0, 1) if resizing overshot; if they are normalised, undo the normalisation: x * std + mean"
    if low >= 0 and 1.25 < high <= 10:
        return "divide by 255 if they are 8-bit values; if they are normalised, undo the normalisation: x * std + mean"
    if low >= -10 and high <= 10:
        return "undo the normalisation: x * std + mean (the model normalises by itself)"
    if low >= -26 and high <= 281:  # 8 bits in floats, with the overshoot of a resize
        return "divide by 255"
    return "scale them so that black is 0 and white is 1"
