"""What the backends share of φ: colour patches with their derivative, and all features side by side."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Sample = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, bool, bool], None]
"""``(images, patches, labels, offsets, boxes, masked, adjoint)``: fill patches, or add the adjoint to the images."""


def differentiable(sample: Sample) -> Callable[..., Tensor]:
    """The ``color_patches`` of a backend, from its kernel."""

    def color_patches(images: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor, resolution: int,
                      masked: bool = True) -> Tensor:
        patches: Tensor = _Sampling.apply(  # type: ignore[no-untyped-call]
            sample, images, labels, offsets, boxes, resolution, masked)
        return patches

    return color_patches


def side_by_side(look_up: Callable[..., Tensor], color_patches: Callable[..., Tensor],
                 position_histogram: Callable[..., Tensor], gradient_histogram: Callable[..., Tensor],
                 ) -> Callable[..., Tensor]:
    """The ``region_features`` of a backend, made from its other operations."""

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

    return region_features


class _Sampling(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, sample: Sample, images: Tensor, labels: Tensor, offsets: Tensor, boxes: Tensor,
                resolution: int, masked: bool) -> Tensor:
        places = labels.contiguous(), offsets, boxes.contiguous()
        ctx.save_for_backward(*places)
        ctx.sample, ctx.shape, ctx.masked = sample, images.shape, masked
        patches = images.new_empty(len(boxes), images.shape[1], resolution, resolution)
        sample(images.contiguous(), patches, *places, masked, False)
        return patches

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        images_grad = grad.new_zeros(ctx.shape)
        ctx.sample(images_grad, grad.contiguous(), *ctx.saved_tensors, ctx.masked, True)
        return None, images_grad, None, None, None, None, None
