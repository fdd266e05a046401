"""Run a recipe: build its job, train it, and write the report."""

from pathlib import Path
from typing import Any

from spit.training import TrainingError
from spit.training import folder as folders
from spit.training.batches import Batches
from spit.training.build import classification_job
from spit.training.distributed import Team
from spit.training.journal import Listener, write_report
from spit.training.loop import fit
from spit.training.recipe import Recipe
from spit.training.retrofit import RetrofitRecipe, retrofit_job
from spit.weights import write_whole


def train(recipe: Recipe, folder: Path, team: Team, listener: Listener | None = None, fresh: bool = False,
          force: bool = False) -> dict[str, Any]:
    """Train by a recipe. A folder that holds a run of the same recipe is resumed.

    Args:
        folder: of the run.
        team: the processes that share it.
        fresh, force: see :func:`spit.training.folder.prepare`.

    Returns:
        Steps, seconds, the metrics of the last validation and the folder of the model, with ``"finished": True`` if
        the run had ended before. Empty in all processes but the first.

    Raises:
        TrainingError, ImageError, WeightsError, ValueError, TypeError, Stopped: one line that says what to do.
    """
    if not team.first:
        if not team.number(0):
            _run(recipe, folder, team, Listener())
        return {}
    with folders.claimed(folder):
        done = folders.prepare(folder, recipe.to_dict(), fresh, force)
        team.number(int(done is not None))
        return {**done, "finished": True} if done is not None else _run(recipe, folder, team, listener or Listener())


def _run(recipe: Recipe, folder: Path, team: Team, listener: Listener) -> dict[str, Any]:
    data = recipe.data
    if not data.train:
        raise TrainingError("expected photos to train on, got none; set data.train in the recipe or by "
                            "--set data.train=FOLDER (spit retrofit: --images FOLDER)")
    job = retrofit_job(recipe, team) if isinstance(recipe, RetrofitRecipe) else classification_job(recipe, team)
    photos = job.photos
    listener.say(f"{job.summary}, {len(photos):,} photos, on {team.size} × {team.device.type}")
    if team.first and photos.classes:
        write_whole(folder / folders.CLASSES, "".join(f"{name}\n" for name in photos.classes).encode())
    batches = Batches(photos, recipe.optimization.batch, recipe.run.seed, team.device, data.workers, data.resident,
                      Path(data.kept) if data.kept else None)
    outcome = fit(job.task, batches, folder, team, recipe, listener)
    if not team.first:
        return {}
    result = {**outcome._asdict(), "name": job.name, "model": str(outcome.model), "photos": len(photos),
              **({"classes": len(photos.classes)} if photos.classes else {})}
    write_report(folder, recipe.to_dict(), result, listener.say)
    folders.write_result(folder, result)
    return result
