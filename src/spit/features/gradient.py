"""Texture: the histogram of a region's Scharr gradients (§2.3)."""

from torch import Tensor

from spit import kernels


def gradient_features(
    images: Tensor, labels: Tensor, offsets: Tensor, bins: int, sigma: float, boxes: Tensor | None = None
) -> Tensor:
    """ξ^grad: mean over a region of a Gaussian kernel between its gradients and K × K directions (§2.3).

    See :func:`spit.kernels.gradient_histogram` for the formula.

    Shape:
        images ``(B, C, H, W)`` uint8 or in [0, 1], labels ``(B, H, W)``, offsets ``(B + 1,)``,
        boxes ``(ΣN, 4)`` to ``(ΣN, K·K)``, ∇y first.

    Note:
        Gradients are those of the raw grey image, as in the published code, not of the normalised one.
        No derivative flows back to the image: with the paper's narrow kernels the histogram is nearly a
        count, whose slope carries little. The colour features carry the derivative.
    """
    return kernels.gradient_histogram(kernels.scharr(images.detach()), labels, offsets, bins, sigma, boxes)
