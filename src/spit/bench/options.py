"""The options of ``spit bench``."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from spit.devices import PRECISIONS, autocast, dtype_of
from spit.evaluation.options import Computing
from spit.options import option

if TYPE_CHECKING:
    import torch

Cast: TypeAlias = "Callable[[], torch.autocast]"


@dataclass(frozen=True)
class Timing(Computing):
    """What is timed, and how."""

    batch: int | None = option(None, "Images in a batch (default: on a GPU 256, on a CPU 8)", least=1)
    precision: str | None = option(None, "Precision of the transformer (default: on a GPU bf16, on a CPU fp32). On a "
                                         "CPU, bf16 needs AVX512_BF16; fp16 needs a GPU. Tokens stay exact",
                                   choices=PRECISIONS)
    compiled: bool | None = option(None, "torch.compile (default: on a GPU)", flag="compile")
    training: bool = option(True, "Time training steps too")
    rounds: int | None = option(None, "Timed calls, whose median counts (default: on a GPU 20, on a CPU 5)", least=1)

    def on(self, device: "torch.device") -> "Timing":
        """The same with the device's defaults in place of None."""
        gpu = device.type == "cuda"
        defaults = {"batch": 256 if gpu else 8, "precision": "bf16" if gpu else "fp32", "compiled": gpu,
                    "rounds": 20 if gpu else 5}
        return self.replace(**{name: value for name, value in defaults.items() if getattr(self, name) is None})

    @property
    def dtype(self) -> "torch.dtype":
        """What the transformer computes in."""
        return dtype_of(self.precision or "fp32")

    def cast(self, device: "torch.device") -> "Cast":
        """A context with that precision; weights stay float32. Raises ValueError if the device is no use for it."""
        autocast(device, self.precision or "fp32")
        return partial(autocast, device, self.precision or "fp32")
