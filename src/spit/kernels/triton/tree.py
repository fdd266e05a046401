"""The tree of connected Ward clustering on the CPU: its rounds have no Triton kernels yet, and wait for each other."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from torch import Tensor

from spit.kernels import tensors


def on_cpu(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of the CPU, for tensors of any device."""

    @wraps(operation)
    def call(first: Tensor, *rest: Any) -> Any:
        answer = operation(first.cpu(), *(value.cpu() if isinstance(value, Tensor) else value for value in rest))
        return tuple(part.to(first.device) for part in answer) if isinstance(answer, tuple) else answer.to(first.device)

    return call


cut_tree = on_cpu(tensors.cut_tree)
graph_tree = on_cpu(tensors.graph_tree)
grid_tree = on_cpu(tensors.grid_tree)
recut = on_cpu(tensors.recut)
region_tree = on_cpu(tensors.region_tree)
tree_labels = on_cpu(tensors.tree_labels)
