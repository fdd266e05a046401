"""From a recipe to what the loop trains."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from spit.config import ModelConfig
from spit.data.classes import folder_names
from spit.data.photos import Photos
from spit.model import SpitModel
from spit.registry import model_config, read_checkpoint
from spit.training import TrainingError
from spit.training.batches import mix_seed
from spit.training.distributed import Team
from spit.training.recipe import Recipe
from spit.training.task import Classification, Task
from spit.training.validate import Validation


class Job(NamedTuple):
    """What a recipe asks for."""

    name: str  # in results
    title: str  # of the report
    task: Task
    photos: Photos
    summary: str  # for the user
    start: str  # weights that the model started from, if the recipe's [model] does not say it


def classification_job(recipe: Recipe, team: Team) -> Job:
    """The job of ``spit train``."""
    data, optimization, asked = recipe.data, recipe.optimization, recipe.model
    photos = Photos(data.train, data.size if data.whole else data.side, labelled=True)
    if len(photos.labels.unique()) < 2:
        name = photos.classes[int(photos.labels[0])]
        raise TrainingError(f"expected photos of at least two classes, got only {name}; give a folder with a "
                            "sub-folder of photos for each class")
    model = build_model(recipe, photos.classes)
    validation = validation_of(recipe, team, photos.classes, model.config.eval_crop)
    if optimization.compile:  # CUDA graphs need gradients of their own in every pass
        model.compile(mode="reduce-overhead" if optimization.accumulate == 1 and not team.together else None)
    task = Classification(model, optimization.smoothing, validation, recipe.elastic)
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    title = asked.title(model.config)
    some = ", ".join(photos.classes[:3]) + (", …" if len(photos.classes) > 3 else "")
    return Job(asked.pretrained or asked.name, title, task, photos,
               f"{title}, {size:.1f} M parameters, {len(photos.classes)} classes ({some})", "")


def build_model(recipe: Recipe, labels: Sequence[str]) -> SpitModel:
    """The model of ``[model]`` for photos with these classes; new weights come from the seed.

    Raises:
        TrainingError: ``num_classes`` of the options does not fit the photos.
    """
    asked, options = recipe.model, recipe.model.options
    torch.manual_seed(mix_seed(recipe.run.seed, "weights"))
    build: Callable[[ModelConfig], SpitModel] = SpitModel
    if asked.pretrained:
        checkpoint = read_checkpoint(asked.pretrained)
        build, config = checkpoint.build, checkpoint.config
    else:
        config = model_config(asked.name, options.get("gradients"))
    config = asked.apply_to(config.replace(num_classes=options.get("num_classes", len(labels))))
    names, classes = folder_names(labels), config.num_classes
    if classes < len(labels) or (names and classes != len(names)):  # numbered ones may lack the last
        raise TrainingError(f"expected num_classes={len(labels)} in [model.options], the number of classes of the "
                            f"photos, got {classes}; leave it out")
    return build(config.replace(class_names=names, **recipe.data.model_options()))


def validation_of(recipe: Recipe, team: Team, classes: Sequence[str] | None = None,
                  crop: float | None = 0.875) -> Validation | None:
    """How a recipe measures a model, if it has photos for it."""
    data = recipe.data
    if not data.validation:
        return None
    photos = Photos(data.validation, data.size, labelled=True, classes=classes)
    return Validation(photos, team, min(recipe.optimization.batch, 256), data.processes, data.resident, crop)
