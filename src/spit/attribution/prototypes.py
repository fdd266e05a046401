"""Prototypes of classes on disk, and the method that projects tokens on them (App. D)."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from spit import registry
from spit.errors import WeightsError
from spit.forward_pass import ForwardPass
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
        """Write them to a ``.safetensors`` file in half precision, atomically."""
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


def load_prototypes(source: Prototypes | str | PathLike[str]) -> Prototypes:
    """Read prototypes from a file, or those of a model that comes with spit, by its name."""
    if isinstance(source, Prototypes):
        return source
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
    """The prototypes of a model's weights, from files or from those that come with spit; WeightsError if none are."""
    predictor = Predictor.of(model)
    for path in (*files, *sorted(registry.CHECKPOINTS.glob(f"*/{FILE}"))):
        found = load_prototypes(path)
        if found.about.get("weights") == predictor.digest:
            found.check(predictor.model)
            return found
    raise WeightsError("no prototypes of this model's weights, neither given nor with spit; make them with "
                       "spit.attribution.fit_prototypes(model, images).save(\"prototypes.safetensors\") and give them "
                       "with --prototypes FILE, in Python with spit.attribution.PrototypeProjection(FILE)")


@dataclass(frozen=True)
class PrototypeProjection:
    """``Φ(ξ) v`` with v the first right singular vector of ``M − μ(M)``, ``M = [Φ(ξ); ν_c]``.

    Φ(ξ) are the image's tokens after the final norm, and ν_c the prototypes of the class, which J(ν) keeps near unit
    length. The paper does not say which way v points; here the prototypes lie on its positive side.

    Args:
        prototypes: of the model, a file with them, or the name of a model of spit (default: those that come with spit
            for the model's weights).

    Example:
        >>> import spit, torch
        >>> from spit.attribution import PrototypeProjection
        >>> model = spit.create_model("spit_tiny_16", pretrained=True)
        >>> method = PrototypeProjection("spit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 64, 64), method, target="tabby").shape
        torch.Size([1, 64, 64])
    """

    name: ClassVar[str] = "prototype"
    of_class: ClassVar[bool] = True
    prototypes: Prototypes | str | PathLike[str] | None = None

    def config(self) -> dict[str, Any]:
        """See :class:`~spit.attribution.Method`."""
        return {"prototypes": None if self.prototypes is None else load_prototypes(self.prototypes).digest}

    def load(self, model: SpitModel | Predictor) -> Prototypes:
        """The prototypes for a model; WeightsError if there are none, or those of a model of another shape."""
        if self.prototypes is None:
            return find_prototypes(model)
        found = load_prototypes(self.prototypes)
        found.check(Predictor.of(model).model)
        return found

    @torch.no_grad()
    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        own = self.load(seen.model).values.to(classes.device)[classes]  # (B, K, D)
        return seen.paint(torch.cat([project(tokens.float(), anchors)
                                     for tokens, anchors in zip(seen.tokens, own, strict=True)]))


def project(tokens: Tensor, prototypes: Tensor) -> Tensor:
    """Tokens on the first principal component of tokens and prototypes, ``(N,)``, prototypes on its positive side."""
    rows = torch.cat([tokens, prototypes.to(tokens.dtype)]).double()
    centred = rows - rows.mean(0)
    gram = centred.T @ centred if centred.shape[0] > centred.shape[1] else centred @ centred.T
    vector = torch.linalg.eigh(gram).eigenvectors[:, -1]
    axis = vector if centred.shape[0] > centred.shape[1] else centred.T @ vector
    axis = axis / axis.norm().clamp(min=torch.finfo(axis.dtype).tiny)
    towards = (centred[len(tokens) :] @ axis).sum()
    values: Tensor = centred[: len(tokens)] @ axis * torch.where(towards < 0, -1.0, 1.0)
    return values.to(tokens.dtype)
