"""The metrics of a run: ``metrics.jsonl``, TensorBoard if it is installed, and a listener."""

import errno
import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spit.training.errors import TrainingError
from spit.weights import write_whole

METRICS = "metrics.jsonl"


class Listener:
    """Follows a run, as a progress bar does; here each method does nothing."""

    def begin(self, step: int, total: int) -> None:
        """The run starts at a step."""

    def advance(self, step: int) -> None:
        """A step is done. It comes without metrics, which would wait for the device."""

    def figures(self, line: Mapping[str, Any]) -> None:
        """A line of ``metrics.jsonl``."""

    def say(self, text: str) -> None:
        """A message for the user."""


class Journal:
    """The metrics of a run on disk, one JSON object a line.

    Args:
        folder: of the run; None, in all processes but the first, writes nothing.
        step: the step to resume from; later lines, of a process that was killed, are removed.
        listener: gets every line too.
    """

    def __init__(self, folder: Path | None, step: int, listener: Listener) -> None:
        self._listener = listener
        self._path = None if folder is None else folder / METRICS
        self._board: Any = None
        if folder is None or self._path is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read_metrics(folder) if line["step"] <= step]
        write_whole(self._path, "".join(json.dumps(line) + "\n" for line in kept).encode())
        if find_spec("tensorboard") is None:
            listener.say("no TensorBoard files: pip install -e '.[train]' installs tensorboard")
            return
        from torch.utils.tensorboard import SummaryWriter

        self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def write(self, kind: str, step: int, figures: Mapping[str, float]) -> None:
        """Append a line in one write."""
        line = {"kind": kind, "step": step, **figures}
        if self._path is not None:
            _append(self._path, (json.dumps(line) + "\n").encode())
        if self._board is not None:
            for name, value in figures.items():
                self._board.add_scalar(f"{kind}/{name}", value, step)
        self._listener.figures(line)

    def close(self) -> None:
        if self._board is not None:
            self._board.close()


def _append(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if os.write(descriptor, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        raise TrainingError(f"{path}: cannot append a line ({error.strerror}); make room and run the same command to "
                            "resume from the last checkpoint") from error
    finally:
        os.close(descriptor)


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The complete lines of a run's ``metrics.jsonl``."""
    path = folder / METRICS
    lines = []
    for text in path.read_text(errors="replace").splitlines() if path.is_file() else []:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("step"), int):
            lines.append(line)
    return lines
