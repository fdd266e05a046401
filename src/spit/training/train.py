"""A recipe carried out: photos, model, task, loop and report put together."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from spit.data.classes import folder_names
from spit.data.photos import Centres, Photos
from spit.model import SpitModel
from spit.registry import create_model, model_config
from spit.training import folder as folders
from spit.training.batches import Batches, mix_seed
from spit.training.classify import Classification
from spit.training.distributed import Team
from spit.training.errors import TrainingError
from spit.training.journal import Listener, Silent
from spit.training.loop import fit
from spit.training.recipe import Recipe
from spit.training.report import write_report
from spit.training.retrofit import RetrofitRecipe, retrofit
from spit.training.validate import Validation
from spit.weights import write_whole


def train(recipe: Recipe, folder: Path, team: Team, listener: Listener | None = None, fresh: bool = False,
          force: bool = False) -> dict[str, Any]:
    """Carry out a recipe, or what is left of it.

    Args:
        folder: of the run; one that holds this recipe's run already is gone on with.
        team: the processes that share it.
        fresh, force: see :func:`spit.training.folder.prepare`.

    Returns:
        The result: steps, seconds, the last validation's figures and the model's folder; with
        ``"finished": True`` where the run had ended before. Empty in all processes but the first.

    Raises:
        TrainingError, ImageError, WeightsError, ValueError, Stopped: one line that says what to do.
    """
    if not team.first:
        if not team.number(0):
            _carry_out(recipe, folder, team, Silent())
        return {}
    listener = listener or Silent()
    with folders.claimed(folder):
        folders.writable(folder)
        done = folders.prepare(folder, recipe.to_dict(), fresh, force)
        team.number(int(done is not None))
        return {**done, "finished": True} if done is not None else _carry_out(recipe, folder, team, listener)


def _carry_out(recipe: Recipe, folder: Path, team: Team, listener: Listener) -> dict[str, Any]:
    if isinstance(recipe, RetrofitRecipe):
        return retrofit(recipe, folder, team, listener)
    return _run(recipe, folder, team, listener)


def build_model(recipe: Recipe, num_classes: int) -> SpitModel:
    """The model of a recipe, its fresh weights drawn from the run's seed.

    Raises:
        ValueError, TypeError, WeightsError: an unknown name or option, or weights that do not fit.
    """
    options: dict[str, Any] = {key: None if value == "none" else value for key, value in recipe.model.options.items()}
    options |= {"drop_path": recipe.optimization.drop_path, "token_budget": recipe.optimization.token_budget or None,
                "num_classes": num_classes}
    torch.manual_seed(mix_seed(recipe.run.seed, "weights"))
    if recipe.model.pretrained:
        return create_model(recipe.model.name, recipe.model.pretrained, gradients=recipe.model.gradients, **options)
    return SpitModel(model_config(recipe.model.name, recipe.model.gradients).replace(**options))


def _run(recipe: Recipe, folder: Path, team: Team, listener: Listener) -> dict[str, Any]:
    data, optimization = recipe.data, recipe.optimization
    if not data.train:
        raise TrainingError("expected photos to train on, got none; give data.train in the recipe, or "
                            "--set data.train=FOLDER")
    photos = Photos(data.train, data.side, labelled=True)
    validation = Photos(data.validation, data.size, labelled=True, classes=photos.classes) if data.validation else None
    classes = recipe.model.num_classes or len(photos.classes)
    if classes < len(photos.classes):
        raise TrainingError(f"expected model.num_classes of at least {len(photos.classes)}, as many as the photos "
                            f"have, got {classes}")
    model = build_model(recipe, classes)
    model.config = model.config.replace(class_names=folder_names(photos.classes, classes), image_size=data.size)
    if optimization.compile:
        model.compile()
    if team.first:
        write_whole(folder / folders.CLASSES, "".join(f"{name}\n" for name in photos.classes).encode())
    listener.say(f"{recipe.model.name}, {sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters, "
                 f"{len(photos):,} photos of {len(photos.classes)} classes, on {team.size} × {team.device.type}")
    batches = Batches(photos, optimization.batch, recipe.run.seed, team.device, data.workers, data.resident,
                      Path(data.kept) if data.kept else None)
    held_out = Validation(Centres(validation, data.size), team, min(optimization.batch, 256), data.workers,
                          data.resident) if validation is not None else None
    outcome = fit(Classification(model, optimization.smoothing, held_out), batches, folder, team, size=data.size,
                  augment=recipe.augment, optimization=optimization, run=recipe.run, listener=listener,
                  about={"recipe": recipe.to_dict()})
    if not team.first:
        return {}
    result = {**asdict(outcome), "name": recipe.model.name, "model": str(outcome.model),
              "classes": len(photos.classes), "photos": len(photos)}
    write_report(folder, recipe.to_dict(), result, listener.say)
    folders.write_result(folder, result)
    return result


