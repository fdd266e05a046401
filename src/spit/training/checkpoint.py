"""Checkpoints of a run: whole or not there, two of them kept.

A checkpoint is ``step-00001000.safetensors`` and, written after it, ``step-00001000.json`` with its SHA-256:
without the second the first does not count. Both are written under another name, synced, and renamed;
older ones go only when the new one is whole. Whatever moment a process dies, the newest whole
checkpoint is found, and where that one is damaged later, the one before it.
"""

import errno
import hashlib
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from spit.training.errors import TrainingError
from spit.weights import write_whole

FORMAT = 1
KEEP = 2
NAME = re.compile(r"step-(\d+)\.(json|safetensors)")
_log = logging.getLogger("spit")


@dataclass(frozen=True)
class Saved:
    """A checkpoint that was read and verified."""

    step: int
    about: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


class Checkpoints:
    """The checkpoints in a folder; one process writes there.

    Args:
        folder: made with the first checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, oldest first; not verified."""
        if not self.folder.is_dir():
            return []
        found = (NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match and match[2] == "json")

    def save(self, step: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write a checkpoint, then remove those that are no longer needed.

        Args:
            tensors: on any device.
            about: what JSON can hold.

        Raises:
            TrainingError: the disk is full, or refuses; the checkpoints before this one are untouched.
        """
        data = safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
        document = {"spit": FORMAT, "step": step, "sha256": hashlib.sha256(data).hexdigest(), **about}
        weights, config = (self._path(step, suffix) for suffix in ("safetensors", "json"))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            config.unlink(missing_ok=True)  # of a damaged one of this step
            write_whole(weights, data)
            write_whole(config, (json.dumps(document, indent=2) + "\n").encode())
        except OSError as error:
            self._remove_all_but(self.steps())
            raise TrainingError(self._failure(step, error)) from error
        self._remove_all_but(self.steps()[-KEEP:])

    def load(self) -> Saved | None:
        """The newest checkpoint that is whole; None where there never was one.

        Raises:
            TrainingError: there are checkpoints, and all are damaged.
        """
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self._read(step)
            except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
                _log.warning("%s is damaged (%s); going back to the one before", self._path(step, "safetensors"), error)
        if steps:
            raise TrainingError(f"{self.folder}: every checkpoint is damaged; begin again with --fresh --force, or "
                                "choose another folder")
        return None

    def _read(self, step: int) -> Saved:
        about = json.loads(self._path(step, "json").read_text())
        if about["spit"] != FORMAT or about["step"] != step:
            raise ValueError(f"format {about['spit']!r}, step {about['step']!r}")
        data = self._path(step, "safetensors").read_bytes()
        if hashlib.sha256(data).hexdigest() != about["sha256"]:
            raise ValueError("its SHA-256 is not the one that was written down")
        return Saved(step, about, safetensors.torch.load(data))

    def _failure(self, step: int, error: OSError) -> str:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        whole = self.steps()
        kept = f"the one of step {whole[-1]} is whole" if whole else "there is none yet"
        return (f"{self.folder}: the checkpoint of step {step} could not be written: {reason}; {kept}; make room and "
                "run the same command to go on")

    def _remove_all_but(self, steps: list[int]) -> None:
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            match = NAME.fullmatch(path.name)
            if match and int(match[1]) not in steps:
                path.unlink(missing_ok=True)

    def _path(self, step: int, suffix: str) -> Path:
        return self.folder / f"step-{step:08d}.{suffix}"
