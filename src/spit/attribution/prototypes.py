"""Prototypes of classes on disk: safetensors in half precision, with their origin in the header."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from spit import registry
from spit.errors import WeightsError
from spit.model import SpitModel
from spit.predictor import Predictor
from spit.weights import write_whole

FILE = "prototypes.safetensors"
FORMAT = 1


@dataclass(frozen=True)
class Prototypes:
    """A few directions of the class token for each class.

    Attributes:
        values: ν, the prototypes.
        counts: number of images behind each class's prototypes; if 0, they are its row of the head.
        about: ``weights``, the digest of the model they belong to, and how they were made.

    Shape:
        values ``(classes, K, D)``, counts ``(classes,)`` int64.

    Example:
        >>> from spit.attribution import load_prototypes
        >>> load_prototypes("spit_tiny_16").values.shape
        torch.Size([1000, 5, 192])
    """

    values: Tensor
    counts: Tensor
    about: Mapping[str, Any]

    def save(self, path: str | PathLike[str]) -> Path:
        """Write them to a file in half precision, atomically.

        Raises:
            WeightsError: the name does not end in ``.safetensors``.
        """
        path = Path(path)
        if path.suffix != ".safetensors":
            raise WeightsError(f"expected a file NAME.safetensors for prototypes, got {path}")
        tensors = {"prototypes": self.values.half().cpu().contiguous(), "counts": self.counts.int().cpu().contiguous()}
        header = {"prototypes": json.dumps({"format": FORMAT, **self.about})}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, safetensors.torch.save(tensors, header))
        return path

    @property
    def digest(self) -> str:
        """A hash of the values."""
        return hashlib.sha256(self.values.half().cpu().contiguous().numpy().tobytes()).hexdigest()[:16]

    def check(self, model: SpitModel) -> None:
        """Raise WeightsError if a model has another number of classes or another width."""
        expected, got = (model.config.num_classes, model.config.width), (len(self.values), self.values.shape[-1])
        if expected != got:
            raise WeightsError(f"expected prototypes of {expected[0]} classes and width {expected[1]}, as the model "
                               f"has, got {got[0]} and {got[1]}; make them with spit.attribution.fit_prototypes")


def load_prototypes(source: str | PathLike[str]) -> Prototypes:
    """Read prototypes from a file, or those of a model that comes with spit, by its name.

    Raises:
        WeightsError: no such file, or not one that spit wrote.
    """
    path = Path(source)
    if not path.exists() and str(source).partition(".")[0] in registry.ARCHITECTURES:
        folder = registry.checkpoint_folder(str(source))
        if folder is None or not (folder / FILE).exists():
            raise WeightsError(f"no prototypes of {source} come with spit; make them with "
                               "spit.attribution.fit_prototypes")
        path = folder / FILE
    try:
        with safe_open(str(path), framework="pt") as file:
            about = json.loads((file.metadata() or {})["prototypes"])
            values, counts = (file.get_tensor(name) for name in ("prototypes", "counts"))
        if about.pop("format") != FORMAT or values.ndim != 3 or counts.shape != values.shape[:1]:
            raise ValueError("another format")
    except FileNotFoundError as error:
        raise WeightsError(f"{source}: expected a file of prototypes or the name of a model, but there is "
                           "none") from error
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise WeightsError(f"{source}: expected prototypes that spit wrote, got something else or a damaged file "
                           f"({error!r})") from error
    return Prototypes(values.float(), counts.long(), about)


def find_prototypes(model: SpitModel | Predictor, files: Iterable[str | PathLike[str]] = ()) -> Prototypes:
    """The prototypes of a model's weights, from files or from those that come with spit.

    Raises:
        WeightsError: none of them, or a damaged file.
    """
    predictor = Predictor.of(model)
    for path in (*files, *sorted(registry.CHECKPOINTS.glob(f"*/{FILE}"))):
        found = load_prototypes(path)
        if found.about.get("weights") == predictor.digest:
            found.check(predictor.model)
            return found
    raise WeightsError("no prototypes of this model's weights, neither given nor with spit; make them with "
                       "spit.attribution.fit_prototypes(model, images).save(\"prototypes.safetensors\") and give them "
                       "with --prototypes FILE, in Python with spit.attribution.PrototypeProjection(FILE)")
