"""A linear layer whose inference takes the fastest product that torch has."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ROWS = 16  # the least multiple that numbers of rows are rounded up to
_FROZEN = ContextVar("frozen", default=False)


@contextmanager
def frozen_weights() -> Iterator[None]:
    """Inside, :func:`product` takes weights for constants, so that a pass with gradients is as fast as inference."""
    token = _FROZEN.set(True)
    try:
        yield
    finally:
        _FROZEN.reset(token)


class Linear(nn.Linear):
    """:func:`product` with weights of its own.

    Shape:
        values ``(ΣN, in_features)`` to ``(ΣN, out_features)``.
    """

    def forward(self, values: Tensor, gelu: bool = False) -> Tensor:
        return product(values, self.weight, self.bias, gelu)


def product(values: Tensor, weight: Tensor, bias: Tensor | None, gelu: bool = False) -> Tensor:
    """``x Wᵀ + b``, with GELU behind it if asked.

    In inference the product itself applies GELU, before its result is written: on a CPU the exact one, on a GPU in half
    precision its tanh form, within 5e-4. Training has the exact one after the product. On a CPU inference multiplies by
    oneDNN, whose sums, unlike MKL's, are the same to the last bit with any number of threads; under autocast in bf16.
    """
    dtype = product_dtype(values)
    if not torch.is_grad_enabled():
        if gelu and bias is not None and values.is_cuda and dtype in (torch.bfloat16, torch.float16):
            return torch._addmm_activation(bias.to(dtype), values.to(dtype), weight.to(dtype).t(), use_gelu=True)
        if _takes_onednn(values, dtype):
            return _onednn(values.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype), gelu)
    multiply = F.linear
    if _frozen():
        weight, bias = weight.detach(), None if bias is None else bias.detach()
        if dtype == torch.float32 and _takes_onednn(values, dtype):
            multiply = _Product.apply
    answer: Tensor = multiply(values, weight, bias)
    return F.gelu(answer) if gelu else answer


def round_rows(values: Tensor) -> Tensor:
    """Rows of zeros behind ``(ΣN, D)`` values, so that oneDNN's products serve many token counts; elsewhere none.

    oneDNN compiles a product for each new number of rows, and keeps it with its memory. So numbers are rounded up to
    multiples of 16, or of a power of two that is at most a 32nd of them.
    """
    training = torch.is_grad_enabled() and not _frozen()
    if training or not _takes_onednn(values, product_dtype(values)):
        return values
    excess = -len(values) % max(ROWS, 2 ** (len(values).bit_length() - 6))
    return F.pad(values, (0, 0, 0, excess)) if excess else values


def product_dtype(values: Tensor) -> torch.dtype:
    """The dtype of a matrix product with these values: autocast's where it is on, else their own."""
    device = values.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else values.dtype


class _Product(torch.autograd.Function):
    """``x Wᵀ + b`` with a gradient of x alone, ``∂x = ∂y W``."""

    @staticmethod
    def forward(values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _onednn(values, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        [weight] = ctx.saved_tensors
        return product(slope, weight.t(), None), None, None


def _frozen() -> bool:
    return not torch.compiler.is_compiling() and _FROZEN.get()


def _onednn(values: Tensor, weight: Tensor, bias: Tensor | None, gelu: bool = False) -> Tensor:
    activation: tuple[object, ...] = ("gelu", [], "none") if gelu else ("none", [], "")
    return cast(Tensor, torch.ops.mkldnn._linear_pointwise(values, weight, bias, *activation))


def _takes_onednn(values: Tensor, dtype: torch.dtype) -> bool:
    if torch.compiler.is_compiling() or values.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    return dtype == torch.bfloat16 or values.dtype == dtype == torch.float32
