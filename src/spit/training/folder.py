"""The folder of a run: its lock, its recipe and its result."""

import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spit.training import TrainingError
from spit.training.journal import CURVES, METRICS, REPORT
from spit.training.loop import CHECKPOINTS, MODEL
from spit.training.recipe import differences
from spit.weights import write_whole

RECIPE = "recipe.json"
RESULT = "result.json"
CLASSES = "classes.txt"
LOCK = ".lock"
FILES = (CHECKPOINTS, MODEL, METRICS, RESULT, CLASSES, REPORT, CURVES, "tensorboard", RECIPE)  # removed in this order


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Lock the folder of a run, which is created if missing; the lock ends with this process at the latest.

    Raises:
        TrainingError: another process has it, it is a file, or it is not writable.
    """
    if folder.exists() and not folder.is_dir():
        raise TrainingError(f"expected a folder for the run, got the file {folder}; choose another with --output")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("w")
    except OSError as error:
        raise TrainingError(f"{folder}: expected a writable folder ({error.strerror}); check permissions") from error
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unlike flock, decoding workers do not inherit it
        except OSError as error:
            raise TrainingError(f"{folder}: another process is training there; wait for it, or choose another "
                                "folder") from error
        yield


def prepare(folder: Path, recipe: Mapping[str, Any], fresh: bool = False, force: bool = False) -> dict[str, Any] | None:
    """Prepare a folder for a run, or for resuming the run that it holds.

    Args:
        fresh: start a new run; refuse if the folder holds one.
        force: with fresh, delete that one first.

    Returns:
        The result, if the run has ended already.

    Raises:
        TrainingError: the folder holds a run of another recipe, or something else.
    """
    there = [name for name in FILES if (folder / name).exists()]
    ours = (folder / RECIPE).is_file()
    if fresh and there and ours:
        if not force:
            raise TrainingError(f"{folder} holds a run already ({there[0]}); leave out --fresh to resume it, add "
                                "--force to delete it, or choose another folder")
        for name in there:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif there and there != [RECIPE]:  # a recipe alone is left by a start that failed
        old = _read(folder / RECIPE)
        if old is None:
            raise TrainingError(f"{folder} holds {there[0]}, but no run of spit; choose another folder")
        changed = differences(old, recipe)
        if changed:
            raise TrainingError(f"{folder} holds a run of another recipe: {'; '.join(changed[:3])}; choose another "
                                "folder, or --fresh --force to delete it")
        result = _read(folder / RESULT)
        if result is not None:
            return result
    write_whole(folder / RECIPE, (json.dumps(recipe, indent=2) + "\n").encode())
    return None


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """Mark a run as ended; written last."""
    write_whole(folder / RESULT, (json.dumps(result, indent=2) + "\n").encode())


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TrainingError(f"{path} is not a file of spit train ({error}); choose another folder, or --fresh "
                            "--force") from error
    return document if isinstance(document, dict) else None
