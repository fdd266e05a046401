"""Weights on disk: safetensors beside a config that names them and their hash.

``config.json`` holds the model's config, the name of the weights file and its SHA-256. The weights
file is named by its content, so a save never touches the weights that the present config names:
whatever moment a save is cut off, the folder holds the old model whole or the new one.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from spit.config import ModelConfig
from spit.errors import MissingExtra, WeightsError
from spit.model import SpitModel
from spit.parts import TOKENIZERS

CONFIG = "config.json"
FORMAT = 1
TEMPORARY = ".spit-saving"  # always the same, so that a killed process leaves one file at most
WEIGHTS_NAME = re.compile(r"model-[0-9a-f]{16}\.safetensors")
HUB_ID = re.compile(r"(?P<repo>(?P<owner>\w[\w.-]*)/\w[\w.-]*)(@(?P<revision>[\w./-]+))?")
FILE_SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")


@dataclass(frozen=True)
class Checkpoint:
    """A config and the tensors that belong to it, read and checked but not yet a model.

    Attributes:
        source: where it came from, for messages.
        config: the model it was saved from.
        tensors: the state dict.
    """

    source: str
    config: ModelConfig
    tensors: Mapping[str, Tensor]

    def build(self, config: ModelConfig | None = None, dtype: torch.dtype = torch.float32,
              num_classes: int | None = None) -> SpitModel:
        """A model with these weights.

        Args:
            config: another config than the checkpoint's; where its number of classes differs, the head
                is a fresh one.
            dtype: of the model's floating parameters, whatever they are on disk.
            num_classes: another number of classes than the config's, whose names are then dropped.

        Raises:
            WeightsError: the tensors are not those of the config; the first differences are named.
        """
        config = config or self.config
        if num_classes is not None:
            config = config.replace(num_classes=num_classes)
        try:
            with torch.random.fork_rng(enabled=config.num_classes == self.config.num_classes, devices=()):
                model = SpitModel(config)
        except (TypeError, ValueError) as error:
            own = {"num_classes": self.config.num_classes, "class_names": self.config.class_names}
            if config.replace(**own) != self.config:  # what was asked for is wrong
                raise
            raise WeightsError(f"{self.source}: {CONFIG} is not one that spit writes: {error}") from error
        expected = model.state_dict()
        tensors = dict(self.tensors)
        if config.num_classes != self.config.num_classes:
            tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("head.")}
            tensors |= {name: tensor for name, tensor in expected.items() if name.startswith("head.")}
        check_tensors(self.source, expected, tensors)
        model.load_state_dict(tensors)
        return model.to(dtype)


def save(model: SpitModel, folder: str | PathLike[str], dtype: torch.dtype | None = None) -> Path:
    """Save a model into a folder, whole or not at all.

    Each step leaves a folder that loads: weights under a name of their own, then the config that
    names them, by atomic replacement, then the removal of weights that no config names. One process
    writes to a folder at a time.

    Args:
        folder: made where it is not there. A folder that holds other things than a model of spit's is
            refused; hidden files, such as a repository's, do not count.
        dtype: of the floating tensors on disk, such as ``torch.float16`` to halve the file; None for
            the model's own.

    Raises:
        WeightsError: the tokenizer is not one of spit's, so that no config could bring it back; or the
            folder is a file, is named like one, or is somebody else's.
    """
    if TOKENIZERS.name_of(model.tokenizer) is None:
        raise WeightsError(f"expected a tokenizer among {', '.join(TOKENIZERS)} to save, got one of class "
                           f"{type(model.tokenizer).__name__}; register it with spit.register_tokenizer, or save "
                           "model.with_tokenizer(...)")
    folder = Path(folder)
    _refuse_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise WeightsError(f"expected a folder to save into, but a part of {folder} is a file; "
                           "choose a new folder") from error
    data = safetensors.torch.save({name: _stored(tensor, dtype) for name, tensor in model.state_dict().items()})
    sha256 = hashlib.sha256(data).hexdigest()
    name = f"model-{sha256[:16]}.safetensors"
    config = {"spit": FORMAT, "model": model.config.to_dict(), "weights": {"file": name, "sha256": sha256}}
    write_whole(folder / name, data)
    write_whole(folder / CONFIG, (json.dumps(config, indent=2) + "\n").encode())
    for path in folder.iterdir():
        if path.name != name and WEIGHTS_NAME.fullmatch(path.name):
            path.unlink(missing_ok=True)
    return folder


def read(source: str | PathLike[str]) -> Checkpoint:
    """Read and check a config and its weights.

    Args:
        source: a folder, or a Hugging Face hub id, "owner/name" or "owner/name@revision". What begins with a dot or a
            slash, ends with a slash, or has a parent folder here is a folder.

    Raises:
        WeightsError: nothing there, a damaged or foreign file, or tensors that do not fit the config.
        MissingExtra: a hub id, and huggingface_hub is not installed.
    """
    path = Path(source)
    if path.is_file():
        raise WeightsError(f"expected a folder with {CONFIG} and weights, got the file {path}; give its folder if "
                           "spit saved it; spit.from_timm reads a ViT from .safetensors or .pth")
    if path.is_dir():
        try:
            return _read(str(path), path.joinpath)
        except FileNotFoundError:  # another process saved between the two reads, or it really is not there
            return _read(str(path), path.joinpath, last=True)
    match = HUB_ID.fullmatch(source) if isinstance(source, str) else None
    if match is None or Path(match["owner"]).is_dir():
        raise WeightsError(f"no folder {source}; give a folder that spit.save_model wrote, or a hub id, owner/name")
    return _read(str(source), _hub_fetcher(match["repo"], match["revision"]))


def is_saved_model(folder: Path) -> bool:
    """Whether a folder holds a config of spit's, sound or of another version."""
    try:
        config = json.loads((folder / CONFIG).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "spit" in config


def check_tensors(source: str, expected: Mapping[str, Tensor], got: Mapping[str, Tensor]) -> None:
    """Refuse tensors of other names or shapes with one line that names the first differences."""
    wrong = [f"{name} is missing" for name in expected if name not in got]
    wrong += [f"{name} is unexpected" for name in sorted(got) if name not in expected]
    wrong += [f"{name} expected {tuple(tensor.shape)}, got {tuple(got[name].shape)}"
              for name, tensor in expected.items() if name in got and got[name].shape != tensor.shape]
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise WeightsError(f"{source}: the tensors do not fit the config: {'; '.join(wrong[:3])}{more}")


def _refuse_folder(folder: Path) -> None:
    """Before anything is written: what cannot be, or should not become, the folder of a model."""
    if folder.suffix.lower() in FILE_SUFFIXES:
        raise WeightsError(f"expected a folder to save into, got the name of a file, {folder}; "
                           f"spit.save_model makes a folder: {folder.with_suffix('')}")
    if folder.is_file():
        raise WeightsError(f"expected a folder to save into, got the file {folder}; choose a new folder")
    if folder.is_dir() and not is_saved_model(folder):
        # Weights without a config are what a first save leaves that was cut off.
        foreign = sorted(path.name for path in folder.iterdir()
                         if not path.name.startswith(".") and not WEIGHTS_NAME.fullmatch(path.name))
        if foreign:
            raise WeightsError(f"expected an empty folder or one that spit.save_model wrote, but {folder} holds "
                               f"{foreign[0]}; choose a new folder")


def read_config(folder: Path) -> ModelConfig:
    """The config of a model in a folder, without its weights."""
    return _read_config(str(folder), folder.joinpath)[0]


def _read_config(source: str, fetch: Callable[[str], Path]) -> tuple[ModelConfig, str, str]:
    """The config, and the name and SHA-256 of the weights file."""
    try:
        config = json.loads(fetch(CONFIG).read_text())
        if config["spit"] != FORMAT:
            raise ValueError(f"format {config['spit']!r}, this version of spit reads {FORMAT}")
        name, sha256 = config["weights"]["file"], config["weights"]["sha256"]
        if not WEIGHTS_NAME.fullmatch(name):
            raise ValueError(f"weights file {name!r}")
        return ModelConfig.from_dict(config["model"]), name, sha256
    except FileNotFoundError as error:
        run = Path(source) / "model"  # where spit train and spit retrofit save the model
        hint = f"; did you mean {run}?" if (run / CONFIG).is_file() else ""
        raise WeightsError(f"{source}: no {CONFIG} there; expected a folder that spit.save_model wrote{hint}"
                           ) from error
    except (KeyError, TypeError, ValueError) as error:  # json's and unicode's errors are ValueErrors
        raise WeightsError(f"{source}: {CONFIG} is not one that spit writes: {error!r}") from error


def _read(source: str, fetch: Callable[[str], Path], last: bool = False) -> Checkpoint:
    config, name, sha256 = _read_config(source, fetch)
    try:
        data = fetch(name).read_bytes()
    except FileNotFoundError as error:
        if not last:
            raise
        raise WeightsError(f"{source}: {CONFIG} names {name}, which is not there") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise WeightsError(f"{source}: {name} is damaged: its SHA-256 is not the one in {CONFIG}; fetch it again")
    try:
        return Checkpoint(source, config, safetensors.torch.load(data))
    except SafetensorError as error:
        raise WeightsError(f"{source}: {name} is not a safetensors file: {error}") from error


def _hub_fetcher(repo: str, revision: str | None) -> Callable[[str], Path]:
    """A function from a file's name to its copy here, every file from one commit."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise MissingExtra("huggingface_hub", "hub", f"loading {repo} from the Hugging Face hub") from error
    commit = revision

    def fetch(name: str) -> Path:
        nonlocal commit
        try:
            path = Path(hf_hub_download(repo, name, revision=commit))
        except (OSError, ValueError) as error:  # huggingface_hub's errors are OSErrors or ValueErrors
            reason = str(error).strip().partition("\n")[0]
            raise WeightsError(f"no {name} of {repo} on the hub, nor such a folder here: {reason}") from error
        commit = path.parent.name  # snapshots/<commit>/<name>: a branch may move between two files
        return path

    return fetch


def digest(model: SpitModel) -> str:
    """A hash of the weights in half precision, so that a model and its half-precision copy have the same one.

    The tokenizer plays no part: weights are the same on any tokens.
    """
    total = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        total.update(name.encode())
        half = tensor.detach().to("cpu", torch.float16 if tensor.is_floating_point() else tensor.dtype)
        total.update(half.contiguous().reshape(-1).view(torch.uint8).numpy())
    return total.hexdigest()[:16]


def _stored(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    tensor = tensor.detach().cpu().contiguous()
    return tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole: under another name first, then in its place by an atomic replacement."""
    temporary = path.with_name(TEMPORARY)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix":  # the new name must be on disk before anything is removed for its sake
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
