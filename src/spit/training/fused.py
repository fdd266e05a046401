"""Small functions compiled to one kernel each."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor


@cache
def fused(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function, compiled for any number of rows; results may differ in the last place."""
    compiled = torch.compile(function, dynamic=True)

    def call(*given: Any) -> Tensor:
        with torch._dynamo.config.patch(recompile_limit=32):  # a version for each operation and size
            return compiled(*given)

    return call
