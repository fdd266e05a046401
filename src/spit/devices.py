"""The device that a user names."""

import re

import torch

from spit.tokens import plural

DEVICE = re.compile(r"(?P<kind>cpu|cuda)(:(?P<index>\d{1,4}))?")


def choose_device(name: str) -> str:
    """The name of a device that exists and that spit has kernels for; "auto" is CUDA if there is any, else the CPU."""
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
