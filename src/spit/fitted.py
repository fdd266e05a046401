"""A file of tensors that belongs to a model's weights: prototypes of its classes, a token head."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Self

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from spit import registry
from spit.documents import expect_object, read_json, reason
from spit.errors import WeightsError
from spit.files import write_whole
from spit.model import SpitModel
from spit.predictor import Predictor

FORMAT = 1


class Fitted(ABC):
    """Base of frozen dataclasses of such tensors; ``about`` has ``weights``, the digest of the model's.

    Args:
        key: name of the header in the file, and of the file beside weights that come with spit.
        what, how: what the tensors are and how to make them, for messages.
    """

    key: str
    what: str
    how: str
    about: Mapping[str, Any]

    def __init_subclass__(cls, key: str, what: str, how: str) -> None:
        cls.key, cls.what, cls.how = key, what, how

    @abstractmethod
    def parts(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The tensors of the file, and what its header says beside ``about``."""

    @classmethod
    @abstractmethod
    def of_parts(cls, tensors: Mapping[str, Tensor], header: dict[str, Any]) -> Self:
        """The inverse of :meth:`parts`; KeyError, TypeError or ValueError if spit did not write them."""

    @abstractmethod
    def misfit(self, model: SpitModel) -> tuple[str, str] | None:
        """The model's shape and the one that these are for, in words; None if they fit."""

    def save(self, path: str | PathLike[str]) -> Path:
        """Write to a ``.safetensors`` file, atomically."""
        path = Path(path)
        if path.suffix != ".safetensors":
            raise WeightsError(f"expected a file NAME.safetensors for {self.what}, got {path}")
        tensors, header = self.parts()
        about = json.dumps({"format": FORMAT, **header, **self.about})
        tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        write_whole(path, safetensors.torch.save(tensors, {self.key: about}))
        return path

    @classmethod
    def load(cls, source: Any) -> Self:
        """Read a file, or the one of a model that comes with spit, by its name; an object is returned as it is."""
        if isinstance(source, cls):
            return source
        path = Path(source)
        if not path.exists() and str(source).partition(".")[0] in registry.ARCHITECTURES:
            folder = registry.checkpoint_folder(str(source), trained=True)
            files = [] if folder is None else registry.checkpoint_files(f"{folder.name}/{cls.key}.safetensors")
            if not files:
                raise WeightsError(f"expected a model that comes with {cls.what}, got {source}; {cls.how}")
            path = files[0]
        try:
            stamp = path.stat()
            found: Self = _read(cls, path.absolute(), (stamp.st_mtime_ns, stamp.st_size, stamp.st_ino))
        except FileNotFoundError as error:
            raise WeightsError(f"{source}: expected a file of {cls.what} or the name of a model, but there is "
                               "none") from error
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise WeightsError(f"{source}: expected {cls.what} that spit wrote, got something else or a damaged file "
                               f"({reason(error)})") from error
        return found

    @classmethod
    def find(cls, predictor: Predictor, files: Iterable[str | PathLike[str]] = ()) -> Self | None:
        """Those of a model's weights, from files or from those that come with spit; None if none are."""
        found = map(cls.load, (*files, *registry.checkpoint_files(f"*/{cls.key}.safetensors")))
        return next((one for one in found if one.misfit(predictor.model) is None
                     and one.about.get("weights") == predictor.digest), None)

    def check(self, model: SpitModel) -> None:
        """Raise WeightsError if a model has another shape."""
        if misfit := self.misfit(model):
            raise WeightsError(f"expected {self.what} for {misfit[0]}, as the model has, got {misfit[1]}; {self.how}")


@lru_cache(maxsize=16)
def _read(kind: type[Any], path: Path, stamp: tuple[int, ...]) -> Any:
    """What a file holds until its stamp changes; copies, since it may be overwritten in place."""
    with safe_open(str(path), framework="pt") as file:
        header = expect_object(read_json((file.metadata() or {})[kind.key]), "its header")
        if (version := header.pop("format")) != FORMAT:
            raise ValueError(f"format {version!r}, this version of spit reads {FORMAT}")
        return kind.of_parts({name: file.get_tensor(name).clone() for name in file.keys()}, header)  # noqa: SIM118
