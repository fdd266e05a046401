"""State dicts of other projects, from memory or from a file; nothing is unpickled."""

import pickle
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn

from spit.errors import WeightsError
from spit.weights import is_saved_model


def read_tensors(source: object, what: str) -> dict[str, Tensor]:
    """The tensors of a state dict, a module, or a ``.safetensors`` or ``.pth`` file.

    Args:
        what: what the file should hold, for messages.
    """
    if isinstance(source, nn.Module):
        return dict(source.state_dict())
    path = Path(source) if isinstance(source, str | PathLike) else None
    if path is not None:
        source = _read(path, f"expected a .safetensors or .pth file with {what}")
    for wrapper in ("model", "state_dict"):  # as training scripts save them
        if isinstance(source, Mapping) and isinstance(source.get(wrapper), Mapping):
            source = source[wrapper]
    if not isinstance(source, Mapping) or not all(isinstance(value, Tensor) for value in source.values()):
        if path is not None:
            raise WeightsError(f"{path} does not hold a state dict of tensors alone; save model.state_dict()")
        raise TypeError(f"expected a state dict, a module or a path, got {type(source).__name__}")
    for name, tensor in source.items():
        if tensor.layout != torch.strided or tensor.is_meta or tensor.is_complex() or tensor.is_quantized:
            raise WeightsError(f"{path or 'state dict'}: expected dense tensors of real numbers, got {name} of "
                               f"{tensor.dtype}, {tensor.layout} on {tensor.device}")
    names = [str(name) for name in source]
    prefix = "module." if names and all(name.startswith("module.") for name in names) else ""  # DistributedDataParallel
    return {name.removeprefix(prefix): tensor for name, tensor in zip(names, source.values(), strict=True)}


def source_name(source: object) -> str:
    """What messages call a source."""
    return str(source) if isinstance(source, str | PathLike) else "state dict"


def _read(path: Path, wanted: str) -> object:
    if is_saved_model(path):
        raise WeightsError(f"{wanted}, got a folder that spit saved, {path}; spit.load_model loads it")
    if path.is_dir():
        raise WeightsError(f"{wanted}, got a folder, {path}; give the file in it")
    if not path.exists():
        raise WeightsError(f"no file {path}; {wanted}")
    try:
        if path.suffix.lower() == ".safetensors":
            return safetensors.torch.load_file(path)
        with path.open("rb") as file:
            start = file.read(2)
        if start[:1] == b"\x80" or start == b"PK":  # a pickle, or the archive that torch.save makes
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged pickle stops torch's reader with almost any exception
        reason = str(error).strip().partition("\n")[0]
        if isinstance(error, pickle.UnpicklingError):  # torch's text advises to unpickle whatever is there
            reason = "nothing else is unpickled: save model.state_dict()"
        raise WeightsError(f"{path} is not a file of tensors alone, or is damaged ({reason}); get it again") from error
    raise WeightsError(f"{path} holds no weights; {wanted}")
