"""The folder of a run: whose it is, whether it may be written, and what is in it."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spit.training.errors import TrainingError
from spit.training.journal import METRICS
from spit.training.loop import CHECKPOINTS, MODEL
from spit.training.recipe import differences
from spit.training.report import CURVES, REPORT
from spit.weights import write_whole

RECIPE = "recipe.json"
RESULT = "result.json"
CLASSES = "classes.txt"
LOCK = ".lock"
FILES = (CHECKPOINTS, MODEL, METRICS, RESULT, CLASSES, REPORT, CURVES, "tensorboard", RECIPE)  # removed in this order


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Keep other processes from writing to a run's folder; the claim ends with this process, however it ends.

    Raises:
        TrainingError: another process is at it, or the folder is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise TrainingError(f"expected a folder for the run, got the file {folder}; choose another with --output")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unlike flock, not held on by decoding workers
        except OSError as error:
            raise TrainingError(f"{folder}: another process is training there; wait for it, or choose another "
                                "folder") from error
        yield


def prepare(folder: Path, recipe: Mapping[str, Any], fresh: bool = False, force: bool = False) -> dict[str, Any] | None:
    """Make a folder ready for a recipe's run, which may have begun there before.

    Args:
        fresh: begin anew; what is there is not overwritten,
        force: unless by force.

    Returns:
        The result, where the run has ended already.

    Raises:
        TrainingError: the folder holds another recipe's run, or something else.
    """
    there = [name for name in FILES if (folder / name).exists()]
    ours = (folder / RECIPE).is_file()
    if fresh and there and ours:
        if not force:
            raise TrainingError(f"{folder} holds a run already ({there[0]}); leave --fresh out to go on with it, add "
                                "--force to lose it, or choose another folder")
        for name in there:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif there and there != [RECIPE]:  # a recipe alone is a start that failed, on wrong input say
        old = _read(folder / RECIPE)
        if old is None:
            raise TrainingError(f"{folder} holds {there[0]}, but no run of spit's; choose another folder")
        changed = differences(old, recipe)
        if changed:
            raise TrainingError(f"{folder} holds a run of another recipe: {'; '.join(changed[:3])}; choose another "
                                "folder, or --fresh --force to lose it")
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
        raise TrainingError(f"{path}: expected what spit train wrote ({error}); choose another folder, or --fresh "
                            "--force") from error
    return document if isinstance(document, dict) else None


def writable(folder: Path) -> None:
    """Rather now than at the first checkpoint.

    Raises:
        TrainingError: the folder cannot be written.
    """
    if not os.access(folder, os.W_OK):
        raise TrainingError(f"{folder}: expected a folder that can be written; check its permissions")
