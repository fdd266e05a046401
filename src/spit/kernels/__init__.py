"""The hot operations under one name each; the device of the first argument picks the backend.

``kernels.reference`` defines the operations in plain torch, ``kernels.numba`` has them as compiled loops on arrays and
``kernels.triton`` in Triton. All give the same partitions bit for bit. ``with kernels.backend("reference"):`` selects
one. The operations of ``kernels.portable`` are plain torch and run on any device.

Code outside this package that has tensors imports from here, never from a backend. The names are those of
:mod:`spit.kernels.dispatch`, which imports torch and is loaded when the first of them is asked for; ``kernels.numba``,
``kernels.options``, ``kernels.rules`` and ``kernels.tables`` need no torch.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

Array = npt.NDArray[Any]

if TYPE_CHECKING:
    from spit.kernels.dispatch import *  # noqa: F403
    from spit.kernels.dispatch import __all__ as __all__


def __getattr__(name: str) -> Any:
    if (name.startswith("__") and name != "__all__") or find_spec(f"spit.kernels.{name}") is not None:
        raise AttributeError(f"module 'spit.kernels' has no attribute {name!r}")  # a submodule: Python imports it
    dispatch = import_module("spit.kernels.dispatch")
    if name not in ("__all__", *dispatch.__all__):
        raise AttributeError(f"module 'spit.kernels' has no attribute {name!r}")
    globals().update({key: getattr(dispatch, key) for key in ("__all__", *dispatch.__all__)})
    return globals()[name]
