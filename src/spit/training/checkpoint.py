"""Checkpoints of a run, complete or absent; the last two are kept.

A checkpoint is ``step-00001000.safetensors`` and then ``step-00001000.json`` with its SHA-256; without the second the
first does not count. Both are written under another name, synced and renamed, and older ones are removed last. At
whatever moment a process dies there is a complete checkpoint, and if that is damaged later, the one before it.
This is our own because torch.save pickles, and nothing is unpickled here.
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
    """The checkpoints in a folder, which the first one creates. One process writes there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        """The steps with a checkpoint, oldest first, unverified."""
        if not self.folder.is_dir():
            return []
        found = (NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match and match[2] == "json")

    def save(self, step: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write a checkpoint, then remove all but the last two.

        Args:
            tensors: on any device.
            about: JSON, stored beside them.

        Raises:
            TrainingError: the disk is full or not writable; earlier checkpoints are untouched.
        """
        data = safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
        document = {"spit": FORMAT, "step": step, "sha256": hashlib.sha256(data).hexdigest(), **about}
        weights, config = (self._path(step, suffix) for suffix in ("safetensors", "json"))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            config.unlink(missing_ok=True)  # a damaged checkpoint of this step
            write_whole(weights, data)
            write_whole(config, (json.dumps(document, indent=2) + "\n").encode())
        except OSError as error:
            self._remove_all_but(self.steps())
            raise TrainingError(self._failure(step, error)) from error
        self._remove_all_but(self.steps()[-KEEP:])

    def load(self) -> Saved | None:
        """The newest complete checkpoint; None if there is none.

        Raises:
            TrainingError: all checkpoints are damaged.
        """
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self._read(step)
            except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
                _log.warning("%s is damaged (%s); using the one before", self._path(step, "safetensors"), error)
        if steps:
            raise TrainingError(f"{self.folder}: every checkpoint is damaged; start again with --fresh --force, or "
                                "choose another folder")
        return None

    def _read(self, step: int) -> Saved:
        about = json.loads(self._path(step, "json").read_text())
        if about["spit"] != FORMAT or about["step"] != step:
            raise ValueError(f"format {about['spit']!r}, step {about['step']!r}")
        data = self._path(step, "safetensors").read_bytes()
        if hashlib.sha256(data).hexdigest() != about["sha256"]:
            raise ValueError("its SHA-256 differs from the recorded one")
        return Saved(step, about, safetensors.torch.load(data))

    def _failure(self, step: int, error: OSError) -> str:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        whole = self.steps()
        kept = f"the one of step {whole[-1]} is intact" if whole else "there is none yet"
        return (f"{self.folder}: the checkpoint of step {step} could not be written: {reason}; {kept}; make room and "
                "run the same command to resume")

    def _remove_all_but(self, steps: list[int]) -> None:
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            match = NAME.fullmatch(path.name)
            if match and int(match[1]) not in steps:
                path.unlink(missing_ok=True)

    def _path(self, step: int, suffix: str) -> Path:
        return self.folder / f"step-{step:08d}.{suffix}"
