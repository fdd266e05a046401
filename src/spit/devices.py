"""The device and the precision that a user names."""

import platform
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spit.options import Options, option
from spit.wording import plural

if TYPE_CHECKING:
    import torch

DEVICE = re.compile(r"(?P<kind>cpu|cuda)(:(?P<index>\d{1,4}))?")
PRECISIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}  # names of types in torch


@dataclass(frozen=True)
class Precise(Options):
    """How exactly the transformer computes."""

    precision: str | None = option(None, "Precision of the transformer (default: fp32). On a CPU, bf16 needs "
                                         "AVX512_BF16; fp16 needs a GPU. Tokens stay exact", choices=PRECISIONS)


def choose_device(name: str) -> str:
    """The name of a device that exists and that spit has kernels for; "auto" is CUDA if there is any, else the CPU."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    found = DEVICE.fullmatch(str(name))
    if found is None:
        raise ValueError(f"expected device cpu, cuda or auto, got {name!r}; cuda:1 is the second GPU")
    present = 1 if found["kind"] == "cpu" else torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(found["index"] or 0) >= present:
        raise ValueError(f"expected a device that exists, but torch finds "
                         f"{'no CUDA device' if present == 0 else plural(present, 'device')} for {name!r}; use cpu"
                         f"{' or cuda:0' if found['kind'] == 'cuda' and present else ''}")
    return str(name)


def dtype_of(precision: str) -> "torch.dtype":
    """The type of numbers of a precision."""
    import torch

    dtype: torch.dtype = getattr(torch, PRECISIONS[precision])
    return dtype


def autocast(device: "torch.device", precision: str) -> "torch.autocast":
    """A precision as a context; ValueError if the device computes slower in it than in fp32."""
    import torch

    if device.type == "cpu" and precision == "fp16":
        raise ValueError("fp16 is for a GPU; use fp32 or bf16 on a CPU")
    if device.type == "cpu" and precision == "bf16" and not has_bf16():
        raise ValueError("bf16 needs a GPU, or a CPU with AVX512_BF16, which this one does not have; use fp32")
    return torch.autocast(device.type, dtype_of(precision), enabled=precision != "fp32")


def has_bf16() -> bool:
    """Whether the CPU multiplies in bf16, and the system allows what its matrix unit needs."""
    import torch

    return torch.cpu._is_avx512_bf16_supported() and (not torch.cpu._is_amx_tile_supported() or torch.cpu._init_amx())


def machine(device: "torch.device | str" = "cuda") -> str:
    """The GPU, or the processor with its threads if there is none or the device is a CPU."""
    import torch

    if torch.device(device).type == "cuda" and torch.cuda.is_available():
        return torch.cuda.get_device_name(device)
    return f"{platform.processor() or platform.machine()}, {plural(torch.get_num_threads(), 'thread')}"
