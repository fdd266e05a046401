"""Weights on disk: safetensors beside a config that names them and their hash.

``config.json`` holds the model's config, the name of the weights file and its SHA-256. The weights file is named by
its content, so a save never touches the weights that the present config names. If a save is interrupted, the folder
holds either the old model or the new one, whole.
"""

import hashlib
import json
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
from spit.documents import expect_object, read_json, reason
from spit.embedder import resize_patches
from spit.errors import MissingExtra, WeightsError
from spit.files import remove_abandoned, write_whole
from spit.model import SpitModel, create_from
from spit.parts import BACKBONES, FEATURES, IMPORT_FIRST, TOKENIZERS

CONFIG = "config.json"
FORMAT = 1
PROJECTION = "embedder.projection.weight"
WEIGHTS_NAME = re.compile(r"model-[0-9a-f]{16}\.safetensors")
HUB_ID = re.compile(r"(?P<repo>(?P<owner>\w[\w.-]*)/\w[\w.-]*)(@(?P<revision>[\w./-]+))?")
OWN_PARTS = (("interpolating", "transformer"), ("crops", "wrapped"))
SHAPES = ("width", "depth", "heads", "mlp_ratio", "qkv_bias", "layer_scale", "channels", "position_bins", "gradients",
          "gradient_bins")  # options that decide which weights fit
FILE_SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")


@dataclass(frozen=True)
class Checkpoint:
    """A config and the tensors that belong to it, read and checked but not yet a model."""

    source: str  # for messages
    config: ModelConfig
    tensors: Mapping[str, Tensor]

    def build(self, config: ModelConfig | None = None, dtype: torch.dtype = torch.float32,
              num_classes: int | None = None) -> SpitModel:
        """A model with these weights.

        Args:
            config: of the model (default: the checkpoint's). If its number of classes differs, the head is new; if
                its resolution differs, γ's colour columns are resized.
            dtype: of the model's floating parameters, whatever they are on disk.
            num_classes: if it differs from the config's, the class names are dropped.
        """
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise TypeError(f"expected dtype as a floating torch.dtype, such as torch.float32, got {dtype!r}; a device "
                            "goes to model.to(device)")
        config = config or self.config
        if num_classes is not None:
            config = config.replace(num_classes=num_classes)
        for parts, key in ((TOKENIZERS, "tokenizer"), (FEATURES, "extractor"), (BACKBONES, "backbone")):
            name = getattr(config, key)
            if name not in parts and name == getattr(self.config, key):
                raise WeightsError(f"{self.source}: its {parts.kind} {name!r} is not registered; {IMPORT_FIRST}")
        fresh_head = config.num_classes != self.config.num_classes
        tensors = {name: tensor for name, tensor in self.tensors.items()
                   if not (fresh_head and name.startswith("head."))}
        if config.resolution != self.config.resolution:
            tensors[PROJECTION] = self._resized(config.resolution)
        self._refuse_changes(config)
        try:
            if (config.extractor, config.backbone) in OWN_PARTS:  # a config of a few bytes can ask for terabytes
                with torch.device("meta"), torch.random.fork_rng(devices=()):
                    check_tensors(self.source, create_from(config).state_dict(), tensors, fresh_head)
            with torch.random.fork_rng(enabled=not fresh_head, devices=()):
                model = create_from(config)
        except (TypeError, ValueError) as error:
            own = {"num_classes": self.config.num_classes, "class_names": self.config.class_names}
            if config.replace(**own) != self.config:  # what was asked for is wrong
                raise
            raise WeightsError(f"{self.source}: {CONFIG} is not one that spit writes: {error}") from error
        check_tensors(self.source, model.state_dict(), tensors, fresh_head)
        check_finite(self.source, tensors)
        model.load_state_dict(tensors, strict=not fresh_head)
        return model.to(dtype)

    def _refuse_changes(self, config: ModelConfig) -> None:
        """Raise WeightsError if options differ that decide which weights fit."""
        changed = [key for key in SHAPES if getattr(config, key) != getattr(self.config, key)]
        if changed:
            own, asked = (", ".join(f"{key}={getattr(one, key)}" for key in changed) for one in (self.config, config))
            raise WeightsError(f"{self.source}: expected {own}, as its weights have, got {asked}; leave "
                               f"{'them' if len(changed) > 1 else 'it'} out, or start without pretrained weights")

    def _resized(self, resolution: int) -> Tensor:
        """γ's weights for colour patches of another resolution."""
        config = self.config
        if config.extractor != ModelConfig.extractor:
            raise WeightsError(f"{self.source}: expected resolution={config.resolution}, as its weights have, got "
                               f"{resolution}; with extractor={config.extractor!r} they cannot be resized")
        return resize_patches(self.tensors[PROJECTION].float(), config.channels, config.resolution, resolution)


def save(model: SpitModel, folder: str | PathLike[str], dtype: torch.dtype | None = None) -> Path:
    """Save a model into a folder, whole or not at all.

    The folder can be loaded after each step: first the weights are written under a new name, then the config that
    names them is replaced atomically, then old weights are removed. One process writes to a folder at a time.

    Args:
        folder: created if needed. A folder that holds anything but a model saved by spit is refused; hidden files do
            not count.
        dtype: of the floating tensors on disk, such as ``torch.float16`` to halve the file (default: the model's own).

    Example:
        >>> import spit, tempfile
        >>> model = spit.create_model("vit_tiny_16", num_classes=2)
        >>> folder = spit.save_model(model, tempfile.mkdtemp())
        >>> spit.load_model(folder).config == model.config
        True
    """
    if not isinstance(model, SpitModel):
        raise TypeError(f"expected a model of spit to save, got {type(model).__name__}; spit.create_model and "
                        "spit.wrap make one, and a predictor has one, predictor.model")
    if TOKENIZERS.name_of(model.tokenizer) is None:
        raise WeightsError(f"expected a tokenizer among {', '.join(TOKENIZERS)} to save, got one of class "
                           f"{type(model.tokenizer).__name__}; register it with spit.register_tokenizer, or save "
                           "model.with_tokenizer(...)")
    model.check_saved()
    folder = Path(folder)
    try:
        _refuse_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise WeightsError(f"expected a folder to save into, but {str(folder)!r} cannot be made ({reason(error)}); "
                           "choose another one") from error
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    if dtype is not None:
        tensors = {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    data = safetensors.torch.save(tensors)
    sha256 = hashlib.sha256(data).hexdigest()
    name = f"model-{sha256[:16]}.safetensors"
    config = {"spit": FORMAT, "model": model.config.to_dict(), "weights": {"file": name, "sha256": sha256}}
    try:
        text = json.dumps(config, indent=2) + "\n"
    except TypeError as error:
        raise WeightsError(f"expected options of the model's parts that JSON can hold: {error}") from error
    write_whole(folder / name, data)
    write_whole(folder / CONFIG, text.encode())
    for path in folder.iterdir():
        if path.name != name and WEIGHTS_NAME.fullmatch(path.name):
            path.unlink(missing_ok=True)
    remove_abandoned(folder)
    return folder


def read(source: str | PathLike[str]) -> Checkpoint:
    """Read and check a config and its weights.

    Args:
        source: a folder, or a Hugging Face hub id, "owner/name" or "owner/name@revision". A source that starts with a
            dot or a slash, ends with a slash, or whose parent folder exists is a folder.
    """
    path = Path(source)
    if path.is_file():
        raise WeightsError(f"expected a folder with {CONFIG} and weights, got the file {path}; give its folder if "
                           "spit saved it; spit.from_timm reads a ViT from .safetensors or .pth")
    if path.is_dir():
        return read_files(str(path), path.joinpath)
    match = HUB_ID.fullmatch(source) if isinstance(source, str) else None
    if match is None or Path(match["owner"]).is_dir():
        raise WeightsError(f"no folder {source}; give a folder that spit.save_model wrote, or a hub id, owner/name")
    return read_files(str(source), _hub_fetcher(match["repo"], match["revision"]))


def is_saved_model(folder: Path) -> bool:
    """Whether a folder holds a config of spit's, sound or of another version."""
    try:
        config = read_json((folder / CONFIG).read_text())
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and "spit" in config


def check_tensors(source: str, expected: Mapping[str, Tensor], got: Mapping[str, Tensor],
                  fresh_head: bool = False) -> None:
    """Raise WeightsError if names or shapes differ, except of a fresh head; the first differences are named."""
    wrong = [f"{name} is missing" for name in expected
             if name not in got and not (fresh_head and name.startswith("head."))]
    wrong += [f"{name} is unexpected" for name in sorted(got) if name not in expected]
    wrong += [f"{name} expected {tuple(tensor.shape)}, got {tuple(got[name].shape)}"
              for name, tensor in expected.items() if name in got and got[name].shape != tensor.shape]
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        raise WeightsError(f"{source}: the tensors do not fit the config: {'; '.join(wrong[:3])}{more}")


def check_finite(source: str, tensors: Mapping[str, Tensor]) -> None:
    """Raise WeightsError if a tensor has NaN or infinity, as a run that diverged leaves them."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.float().isfinite().all()):
            raise WeightsError(f"{source}: expected finite weights, got NaN or infinity in {name}; take an earlier "
                               "checkpoint, or get the file again")


def _refuse_folder(folder: Path) -> None:
    """Raise WeightsError if a model should not be saved here."""
    if folder.suffix.lower() in FILE_SUFFIXES:
        raise WeightsError(f"expected a folder to save into, got the name of a file, {folder}; "
                           f"spit.save_model makes a folder: {folder.with_suffix('')}")
    if folder.is_dir() and not is_saved_model(folder):
        # An interrupted first save leaves weights without a config.
        foreign = sorted(path.name for path in folder.iterdir()
                         if not path.name.startswith(".") and not WEIGHTS_NAME.fullmatch(path.name))
        if foreign:
            raise WeightsError(f"expected an empty folder or one that spit.save_model wrote, but {folder} holds "
                               f"{foreign[0]}; choose a new folder")


def read_config(source: str, fetch: Callable[[str], Path]) -> tuple[ModelConfig, str, str]:
    """The config of a saved model, and the name and SHA-256 of its weights file."""
    try:
        config = expect_object(read_json(fetch(CONFIG).read_text()), "it")
        if config["spit"] != FORMAT:
            raise ValueError(f"format {config['spit']!r}, this version of spit reads {FORMAT}")
        file = expect_object(config["weights"], "weights")
        name, sha256 = file["file"], file["sha256"]
        if not isinstance(name, str) or not WEIGHTS_NAME.fullmatch(name):
            raise ValueError(f"weights file {name!r}")
        return ModelConfig.from_dict(expect_object(config["model"], "model")), name, sha256
    except FileNotFoundError as error:
        run = Path(source) / "model"  # where spit train and spit retrofit save the model
        hint = f"; did you mean {run}?" if (run / CONFIG).is_file() else ""
        raise WeightsError(f"{source}: no {CONFIG} there; expected a folder that spit.save_model wrote{hint}"
                           ) from error
    except (KeyError, TypeError, ValueError) as error:  # json's and unicode's errors are ValueErrors
        raise WeightsError(f"{source}: {CONFIG} is not one that spit writes: {reason(error)}") from error


def read_files(source: str, fetch: Callable[[str], Path]) -> Checkpoint:
    """Read and check a config and its weights, from a function that returns the path of a file by its name."""
    for _ in range(2):  # another process may save between the two reads
        config, name, sha256 = read_config(source, fetch)
        try:
            data = fetch(name).read_bytes()
            break
        except FileNotFoundError:
            continue
    else:
        raise WeightsError(f"{source}: {CONFIG} names {name}, which is not there")
    if hashlib.sha256(data).hexdigest() != sha256:
        raise WeightsError(f"{source}: {name} is damaged: its SHA-256 is not the one in {CONFIG}; fetch it again")
    try:
        return Checkpoint(source, config, safetensors.torch.load(data))
    except SafetensorError as error:
        raise WeightsError(f"{source}: {name} is not a safetensors file: {error}") from error


def _hub_fetcher(repo: str, revision: str | None) -> Callable[[str], Path]:
    """A function from a file's name to its local copy; every file comes from one commit."""
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    except ImportError as error:
        raise MissingExtra("huggingface_hub", "hub", f"loading {repo} from the Hugging Face hub") from error
    commit, offline = revision, False
    try:  # before the download, which without a network tries again for half a minute
        get_hf_file_metadata(hf_hub_url(repo, CONFIG, revision=revision))
    except Exception as error:  # by its version of requests or httpx; an answer that refuses has a response
        offline = getattr(error, "response", None) is None

    def fetch(name: str) -> Path:
        nonlocal commit
        try:
            path = Path(hf_hub_download(repo, name, revision=commit, local_files_only=offline))
        except (OSError, ValueError) as error:  # huggingface_hub's errors are OSErrors or ValueErrors
            if offline:
                raise WeightsError(f"{repo}: no such folder, no answer from the Hugging Face hub, and nothing in its "
                                   "cache; check the name and the network") from error
            line = str(error).strip().partition("\n")[0]
            raise WeightsError(f"no {name} of {repo} on the hub, nor such a folder here: {line}") from error
        commit = path.parent.name  # snapshots/<commit>/<name>: a branch may move between two files
        return path

    return fetch


def digest(model: SpitModel) -> str:
    """A hash of the weights in half precision, the same for a half-precision copy and with any tokenizer."""
    total = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        total.update(name.encode())
        half = tensor.detach().to("cpu", torch.float16 if tensor.is_floating_point() else tensor.dtype)
        total.update(half.contiguous().reshape(-1).view(torch.uint8).numpy())
    return total.hexdigest()[:16]

