"""Attention of packed rows as one operation of torch, which autograd and compiled code take as a whole."""

from typing import Any

import torch
from torch import Tensor


@torch.library.custom_op("spit::attend", mutates_args=())
def attend(packed: Tensor, offsets: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """See :func:`spit.backbone.kernels.attend`."""
    from spit.backbone import kernels  # needs triton

    return kernels.attend(packed.contiguous(), offsets, longest)


@torch.library.custom_op("spit::attend_backward", mutates_args=())
def attend_backward(slope: Tensor, packed: Tensor, offsets: Tensor, longest: int, answer: Tensor,
                    sums: Tensor) -> Tensor:
    """See :func:`spit.backbone.kernels.attend_backward`."""
    from spit.backbone import kernels

    return kernels.attend_backward(slope.contiguous(), packed.contiguous(), offsets, longest, answer, sums)


@attend.register_fake
def _(packed: Tensor, offsets: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    rows, _, heads, width = packed.shape
    return packed.new_empty(rows, heads, width), packed.new_empty(heads, rows, dtype=torch.float32)


@attend_backward.register_fake
def _(slope: Tensor, packed: Tensor, *others: object) -> Tensor:
    return packed.new_empty(packed.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    packed, offsets, ctx.longest = inputs
    ctx.save_for_backward(packed, offsets, *output)


def _backward(ctx: Any, slope: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
    packed, offsets, answer, sums = ctx.saved_tensors
    return attend_backward(slope, packed, offsets, ctx.longest, answer, sums), None, None


attend.register_autograd(_backward, setup_context=_keep)
