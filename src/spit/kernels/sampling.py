"""Colour patches with their derivative, for backends whose kernels autograd cannot see into."""

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
