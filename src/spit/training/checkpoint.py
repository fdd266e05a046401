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
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from spit.documents import expect_object, read_json, reason
from spit.files import remove_abandoned, write_whole
from spit.training import TrainingError

FORMAT = 1
KEEP = 2
NAME = re.compile(r"step-(\d+)\.(json|safetensors)")
_log = logging.getLogger("spit")


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
        """Write a checkpoint, with ``about`` as JSON beside it, then remove all but the last two.

        If the disk is full or not writable, earlier checkpoints are untouched.
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
            why = "the disk is full" if error.errno == errno.ENOSPC else reason(error)
            kept = f"the one of step {self.steps()[-1]} is intact" if self.steps() else "there is none yet"
            raise TrainingError(f"{self.folder}: the checkpoint of step {step} could not be written: {why}; {kept}; "
                                "make room and run the same command to resume") from error
        self._remove_all_but(self.steps()[-KEEP:])
        remove_abandoned(self.folder)

    def load(self) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """The newest complete checkpoint: its document, with the step, and its tensors. None if there is none."""
        steps = self.steps()
        for step in reversed(steps):
            try:
                return self._read(step)
            except (OSError, KeyError, TypeError, ValueError, SafetensorError) as error:
                _log.warning("%s is damaged (%s); using the one before", self._path(step, "safetensors"), reason(error))
        if steps:
            raise TrainingError(f"{self.folder}: every checkpoint is damaged; delete the run with fresh and force, or "
                                "choose another folder")
        return None

    def _read(self, step: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
        about = expect_object(read_json(self._path(step, "json").read_text()), "its JSON")
        if about["spit"] != FORMAT or about["step"] != step:
            raise ValueError(f"format {about['spit']!r}, step {about['step']!r}")
        data = self._path(step, "safetensors").read_bytes()
        if hashlib.sha256(data).hexdigest() != about["sha256"]:
            raise ValueError("its SHA-256 differs from the recorded one")
        return about, safetensors.torch.load(data)

    def _remove_all_but(self, steps: list[int]) -> None:
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            match = NAME.fullmatch(path.name)
            if match and int(match[1]) not in steps:
                path.unlink(missing_ok=True)

    def _path(self, step: int, suffix: str) -> Path:
        return self.folder / f"step-{step:08d}.{suffix}"
