"""Position, shape and scale: the histogram of a region's coordinates (§2.3)."""

from torch import Tensor

from spit import kernels


def position_features(
    labels: Tensor, offsets: Tensor, bins: int, sigma: float, boxes: Tensor | None = None
) -> Tensor:
    """ξ^pos: mean over a region of a Gaussian kernel between its pixels and K × K places (§2.3).

    See :func:`spit.kernels.position_histogram` for the formula.

    Shape:
        labels ``(B, H, W)``, offsets ``(B + 1,)``, boxes ``(ΣN, 4)`` to ``(ΣN, K·K)``, y first.
    """
    return kernels.position_histogram(labels, offsets, bins, sigma, boxes)
