"""Run a recipe in a folder: lock it, train or resume, and write the report and the result."""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from spit.documents import read_json
from spit.environment import environment
from spit.interruption import on_signals
from spit.training import TrainingError
from spit.training.batches import Batches
from spit.training.distributed import Team
from spit.training.journal import Listener, write_json, write_report
from spit.training.loop import FILES, RECIPE, RESULT, fit
from spit.training.recipe import Recipe

LOCK = ".lock"


def train(recipe: Recipe, folder: Path, team: Team, listener: Listener | None = None, fresh: bool = False,
          force: bool = False) -> dict[str, Any]:
    """Train by a recipe. A folder that holds a run of the same recipe is resumed.

    Args:
        fresh, force: see :func:`check_run`.

    Returns:
        Steps, seconds, the metrics of the last validation and the folder of the model, with ``"finished": True`` if
        the run had ended before. Empty in all processes but the first.
    """
    if not team.first:
        if not team.number(0):
            _run(recipe, folder, team, Listener())
        return {}
    with claimed(folder):
        done = check_run(folder, recipe, fresh, force)
        team.number(int(done is not None))
        if done is not None:
            return {**done, "finished": True}
        return _run(recipe, folder, team, listener or Listener(), fresh)


def _run(recipe: Recipe, folder: Path, team: Team, listener: Listener, fresh: bool = False) -> dict[str, Any]:
    data = recipe.data
    if not data.train:
        raise TrainingError("expected photos to train on, got none; set data.train to their folder")
    # The caller's random state stays, and what torch's loaders and compilers leave behind goes.
    with (torch.random.fork_rng([team.device] if team.device.type == "cuda" else ()), environment(),
          on_signals(signal.getsignal(signal.SIGCHLD), signal.SIGCHLD)):
        job = recipe.job(team)
        photos = job.photos
        listener.say(f"{job.summary}, {len(photos):,} photos, on {team.size} × {team.device.type}")
        batches = Batches(photos, recipe.optimization.batch, recipe.run.seed, team.device, data.processes,
                          data.resident, data.whole)
        outcome = fit(job.task, batches, folder, team, recipe, listener, fresh)
    if not team.first:
        return {}
    result = {**outcome._asdict(), "name": job.name, "model": str(outcome.model), "photos": len(photos),
              **({"classes": len(photos.classes)} if photos.classes else {})}
    sections = {**recipe.to_dict(), "model": recipe.model.describe(job.task.module.config, job.start),
                "data": {**data.to_dict(), "workers": data.processes}}  # not more than there were cores
    write_report(folder, job.title, sections, result)
    write_json(folder / RESULT, result)  # last: the run has ended
    return result


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Lock the folder of a run; the lock ends with this process at the latest.

    The folder is made if there is none, and removed again if nothing was written there, as by a run that was refused.
    The file of the lock is removed with it.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]  # the deepest first
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / LOCK
    with lock.open("w") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unlike flock, decoding workers do not inherit it
            if lock.stat().st_ino != os.fstat(file.fileno()).st_ino:
                raise BlockingIOError("a run that ended has just removed it")
        except OSError as error:
            raise TrainingError(f"{folder}: another process is training there; wait for it, or choose another "
                                "folder") from error
        try:
            yield
        finally:
            with suppress(OSError):
                lock.unlink()
                for path in made:
                    path.rmdir()  # if it is empty


def check_run(folder: Path, recipe: Recipe, fresh: bool = False, force: bool = False) -> dict[str, Any] | None:
    """Check a folder for a run, or for resuming the run that it holds; return its result if it has ended already.

    Args:
        fresh: start a new run; refuse if the folder holds one.
        force: with fresh, allow one, which :func:`~spit.training.loop.fit` deletes.
    """
    there = [name for name in FILES if (folder / name).exists()]
    ours = (folder / RECIPE).is_file()
    if fresh and there and ours:
        if not force:
            raise TrainingError(f"{folder} holds a run already ({there[0]}); leave out fresh to resume it, add "
                                "force to delete it, or choose another folder")
    elif there and there != [RECIPE]:  # a recipe alone is left by a start that was killed
        old = _read(folder / RECIPE)
        if old is None:
            raise TrainingError(f"{folder} holds {there[0]}, but no run of spit; choose another folder")
        changed = recipe.changes_since(old)
        if changed:
            raise TrainingError(f"{folder} holds a run of another recipe: {changed}; choose another folder, or "
                                "delete it with fresh and force")
        result = _read(folder / RESULT)
        if result is not None:
            return result
    return None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        document = read_json(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TrainingError(f"{path} is not a file of spit train ({error}); choose another folder, or "
                            "delete the run with fresh and force") from error
    return document if isinstance(document, dict) else None
