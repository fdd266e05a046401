"""φ in plain torch: the definition that the feature kernels of every backend equal (§2.3)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from spit.kernels.portable import running_sum
from spit.kernels.reference.preprocess import look_up


def region_features(images: Tensor, table: Tensor | None, gradients: Tensor | None, labels: Tensor, offsets: Tensor,
                    boxes: Tensor, windows: Tensor, resolution: int, masked: bool, position: tuple[int, float],
                    texture: tuple[int, float], dtype: torch.dtype = torch.float32) -> Tensor:
    """ξ^col, ξ^pos and ξ^grad of each region side by side (§2.3).

    Args:
        images: normalised colours, or 8 bits that ``table`` normalises.
        table: for :func:`look_up`, or None.
        gradients: for :func:`gradient_histogram`; None leaves out ξ^grad.
        boxes: boxes that contain the regions.
        windows: boxes to sample colours from, as ``boxes`` in :func:`color_patches`.
        resolution: K of the colour patches.
        masked: as in :func:`color_patches`.
        position: K and σ of :func:`position_histogram`.
        texture: K and σ of :func:`gradient_histogram`.
        dtype: of the answer.

    Shape:
        images ``(B, C, H, W)``, table ``(C, 256)``, gradients ``(B, 2, H, W)``, labels ``(B, H, W)`` int32, offsets
        ``(B + 1,)`` int64, boxes and windows ``(ΣN, 4)`` int32 to ``(ΣN, C·K·K + K·K + K·K)``.
    """
    colors = images if table is None else look_up(images, table)
    parts = [color_patches(colors, labels, offsets, windows, resolution, masked).flatten(1),
             position_histogram(labels, offsets, *position, boxes)]
    if gradients is not None:
        parts.append(gradient_histogram(gradients, labels, offsets, *texture, boxes))
    return torch.cat(parts, 1).to(dtype)


def color_patches(images: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, resolution: int,
                  masked: bool = True) -> Tensor:
    """The bounding box of each region at a fixed resolution, pixels of other regions set to 0 (§2.3).

    With ``m_n`` the indicator of region ``S_n`` and ``(y0, x0, y1, x1)`` its box, pixel (i, j) of the
    patch is the bilinear interpolation of ``m_n · ξ`` at

        y = y0 + max(0, (i + ½)(y1 − y0) / K − ½),   x likewise,

    with the neighbours of a sample clamped to the box, as ``F.interpolate(align_corners=False)`` of the
    masked box. A K×K box is copied unchanged (Lemma 1). Differentiable with respect to the images.

    Args:
        images: what to sample, normalised.
        boxes: ``(y0, x0, y1, x1)`` with exclusive ends. Outside the image everything is 0 (the zero padding of
            App. A).
        resolution: K, the paper's β.
        masked: whether pixels of other regions are set to 0; if False, ``m_n`` is 1 everywhere in the image.

    Shape:
        images ``(B, C, H, W)``, labels ``(B, H, W)`` int32, offsets ``(B + 1,)`` int64, boxes
        ``(ΣN, 4)`` int32 to ``(ΣN, C, K, K)``.

    Note:
        The patch is not divided by the interpolated mask, which the paper does not mention, so the edge of a
        region fades to 0.
    """
    height, width = labels.shape[-2:]
    image_of = torch.arange(len(labels), device=labels.device).repeat_interleave(offsets.diff())
    label_of = torch.arange(len(boxes), device=labels.device) - offsets[image_of]
    image_of, label_of = image_of[:, None, None], label_of[:, None, None]
    y0, x0, y1, x1 = boxes.long().unbind(1)
    parts = []
    for y, y_weight in _taps(y0, y1, resolution):
        for x, x_weight in _taps(x0, x1, resolution):
            ys, xs = y[:, :, None], x[:, None, :]
            inside = (ys >= 0) & (ys < height) & (xs >= 0) & (xs < width)
            ys, xs = ys.clamp(0, height - 1), xs.clamp(0, width - 1)
            own = inside & (labels[image_of, ys, xs] == label_of) if masked else inside
            weight = y_weight[:, :, None] * x_weight[:, None, :] * own  # in double: all are rounded once, at the end
            parts.append(weight[..., None] * images[image_of, :, ys, xs].double())
    patches = parts[0] + parts[1] + parts[2] + parts[3]  # (ΣN, K, K, C)
    return patches.to(images.dtype).permute(0, 3, 1, 2).contiguous()


def position_histogram(labels: Tensor, offsets: Tensor, bins: int, sigma: float, boxes: Tensor | None = None) -> Tensor:
    """Joint histogram over the positions in each region (§2.3, positional encoding).

        ξ^pos_{n,y,x} = 1/|S_n| Σ_{(y_j, x_j) ∈ S_n} exp(−((y − y_j)² + (x − x_j)²) / 2σ²)

    at the centres (y, x) of K × K equal cells of [−1, 1]², the positions being
    ``y_j = (2j + 1 − H) / max(H, W)`` for row j, and likewise for columns.

    Args:
        bins: K, in each direction.
        sigma: bandwidth; 0 counts each pixel in the cell that contains it, the empirical histogram.
        boxes: boxes that contain the regions, for a backend that goes region by region (default: computed).

    Shape:
        labels ``(B, H, W)`` int32, offsets ``(B + 1,)`` int64 to ``(ΣN, K·K)`` float32, y first.

    Note:
        The paper's sum is divided by the region's size here, as in the published code. Positions are
        normalised by the longer side, so that a non-square image keeps its aspect. In the empirical
        histogram a cell owns its lower end.
    """
    _, height, width = labels.shape
    longest = max(height, width)
    weights = []
    for size in (height, width):
        place = 2 * torch.arange(size, device=labels.device) + 1 - size + longest  # (y' + 1)·max(H, W)
        if sigma == 0:  # integers, so that no pixel leaves its cell by rounding
            weights.append(F.one_hot((place * bins).div(2 * longest, rounding_mode="floor"), bins).double())
        else:
            weights.append(_gaussian(place.double() / longest - 1, bins, sigma))
    y_weights = weights[0][None, :, None].expand(*labels.shape, bins)
    x_weights = weights[1][None, None].expand(*labels.shape, bins)
    return _region_means(y_weights, x_weights, labels, offsets)


def gradient_histogram(gradients: Tensor, labels: Tensor, offsets: Tensor, bins: int, sigma: float,
                       boxes: Tensor | None = None) -> Tensor:
    """Joint histogram over the image gradients in each region (§2.3, texture features).

        ξ^grad_{n,y,x} = 1/|S_n| Σ_{j ∈ S_n} exp(−((y − ∇y_j)² + (x − ∇x_j)²) / 2σ²)

    at the centres (y, x) of K × K equal cells of [−1, 1]², divided by the region's size as
    :func:`position_histogram`.

    Shape:
        gradients (∇y, ∇x) in [−1, 1] ``(B, 2, H, W)``, labels ``(B, H, W)`` int32, offsets ``(B + 1,)`` int64 to
        ``(ΣN, K·K)`` float32, ∇y first.
    """
    values = gradients.double()
    if sigma == 0:
        cells = ((values + 1) * (bins / 2)).floor().long().clamp(0, bins - 1)
        weights = F.one_hot(cells, bins).double()
    else:
        weights = _gaussian(values, bins, sigma)
    return _region_means(weights[:, 0], weights[:, 1], labels, offsets)


def scharr(images: Tensor) -> Tensor:
    """Scharr gradients of the grey image (§2.3, texture features).

        ∇y = (3, 10, 3)/16 ∗_x (ξ[y + 1] − ξ[y − 1]),   ∇x = (3, 10, 3)/16 ∗_y (ξ[x + 1] − ξ[x − 1])

    with ξ the mean over channels and replicate padding. Images, uint8 or in [0, 1], give gradients in
    [−1, 1].

    Shape:
        ``(B, C, H, W)`` to ``(B, 2, H, W)`` floating, in the order (∇y, ∇x).
    """
    white = 1
    if images.dtype == torch.uint8:
        images, white = images.float(), 255
    grey = F.pad(running_sum(images.movedim(1, -1))[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
    dy = (grey[:, 2:] - grey[:, :-2]).double()  # (B, H, W + 2)
    dx = (grey[:, :, 2:] - grey[:, :, :-2]).double()  # (B, H + 2, W)
    dy = 3 * dy[:, :, :-2] + 10 * dy[:, :, 1:-1] + 3 * dy[:, :, 2:]
    dx = 3 * dx[:, :-2] + 10 * dx[:, 1:-1] + 3 * dx[:, 2:]
    return (torch.stack([dy, dx], 1) / (16 * images.shape[1] * white)).to(images.dtype)


def _taps(start: Tensor, end: Tensor, resolution: int) -> list[tuple[Tensor, Tensor]]:
    """The two pixels between which each sample lies, with their weights, each ``(ΣN, K)``.

    In integers: 2K times the sample's place is (2i + 1)(end − start) − K, so that every backend
    finds the same pixels and weights.
    """
    size = (end - start)[:, None]
    place = ((2 * torch.arange(resolution, device=start.device) + 1) * size - resolution).clamp_min(0)
    low = place.div(2 * resolution, rounding_mode="floor")
    weight = (place % (2 * resolution)).double() / (2 * resolution)
    high = torch.minimum(low + 1, size - 1)
    return [(start[:, None] + low, 1 - weight), (start[:, None] + high, weight)]


def _gaussian(values: Tensor, bins: int, sigma: float) -> Tensor:
    """exp(−(c_k − v)² / 2σ²) at the centres c_k of K equal cells of [−1, 1], ``(...)`` to ``(..., K)``."""
    centres = (2 * torch.arange(bins, device=values.device, dtype=values.dtype) + 1) / bins - 1
    return torch.exp(-(((values[..., None] - centres) / sigma) ** 2) / 2)


def _region_means(y_weights: Tensor, x_weights: Tensor, labels: Tensor, offsets: Tensor) -> Tensor:
    """Mean over each region of the outer product of two ``(B, H, W, K)`` weights, ``(ΣN, K·K)``."""
    bins = y_weights.shape[-1]
    rows = (labels + offsets[:-1, None, None]).flatten()  # packed row of each pixel
    total = int(offsets[-1])
    sizes = torch.bincount(rows, minlength=total).clamp_min(1)
    histogram = y_weights.new_zeros(total, bins, bins)
    for k in range(bins):  # one row of cells at a time: K numbers a pixel in memory, not K²
        products = (y_weights[..., k, None] * x_weights).flatten(0, 2)
        histogram[:, k] = histogram.new_zeros(total, bins).index_add_(0, rows, products)
    return (histogram / sizes[:, None, None]).flatten(1).float()
