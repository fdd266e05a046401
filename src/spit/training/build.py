"""From a recipe to what the loop trains."""

from collections.abc import Sequence
from pathlib import Path

import torch

from spit.data.classes import folder_names
from spit.data.photos import Photos
from spit.data.shards import expand_pattern
from spit.model import SpitModel
from spit.registry import model_config, read_checkpoint
from spit.training import TrainingError
from spit.training.batches import mix_seed
from spit.training.distributed import Team
from spit.training.recipe import ModelRecipe, Recipe
from spit.training.task import Classification, Task
from spit.training.validate import Validation

Job = tuple[str, Task, Photos, str]
"""The name in results, the task, its photos, and a summary for the user."""


def classification_job(recipe: Recipe, team: Team) -> Job:
    """The job of ``spit train``."""
    data, optimization = recipe.data, recipe.optimization
    photos = Photos(data.train, data.size if data.whole else data.side, labelled=True)
    _expect_classes(photos, data.train)
    model = build_model(recipe, len(photos.classes))
    names, classes = folder_names(photos.classes), model.config.num_classes
    if classes < len(photos.classes) or (names and classes != len(names)):  # numbered ones may lack the last
        raise TrainingError(f"expected num_classes={len(photos.classes)} in [model.options], the number of classes of "
                            f"the photos, got {classes}; leave it out")
    model.config = data.apply_to(model.config.replace(class_names=names))
    validation = validation_of(recipe, team, photos.classes, model.config.eval_crop)
    if optimization.compile:  # CUDA graphs need gradients of their own in every pass
        model.compile(mode="reduce-overhead" if optimization.accumulate == 1 and not team.together else None)
    name = recipe.model.pretrained or recipe.model.name
    task = Classification(model, optimization.smoothing, validation, recipe.elastic)
    size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    title = recipe.model.title(model.config)
    some = ", ".join(photos.classes[:3]) + (", …" if len(photos.classes) > 3 else "")
    return name, task, photos, f"{title}, {size:.1f} M parameters, {len(photos.classes)} classes ({some})"


def _expect_classes(photos: Photos, sources: Sequence[str]) -> None:
    """Raise TrainingError if all photos have one class; folders of classes without photos are named."""
    if len(photos.labels.unique()) > 1:
        return
    name = photos.classes[int(photos.labels[0])]
    folders = (folder for source in sources for path in expand_pattern(source) for folder in Path(path).glob("[!.]*/"))
    empty = sorted({folder.name for folder in folders} - {name})
    some = f" ({', '.join(empty[:3])}{', …' * (len(empty) > 3)}: no photos)" if empty else ""
    raise TrainingError(f"expected photos of at least two classes, got only {name}{some}; give a folder with a "
                        "sub-folder of photos for each class")


def build_model(recipe: Recipe, num_classes: int) -> SpitModel:
    """The model of ``[model]``, with this many classes if its options have none. New weights come from the seed."""
    asked = recipe.model
    num_classes = asked.options.get("num_classes", num_classes)
    torch.manual_seed(mix_seed(recipe.run.seed, "weights"))
    if asked.pretrained:
        return pretrained_model(asked, num_classes)
    options = asked.options
    config = model_config(asked.name, options.get("gradients"), options.get("preset", "spit"))
    return SpitModel(asked.apply_to(config.replace(num_classes=num_classes)))


def pretrained_model(asked: ModelRecipe, num_classes: int | None = None) -> SpitModel:
    """The model of ``model.pretrained`` with ``[model.options]``; another number of classes makes a new head."""
    checkpoint = read_checkpoint(asked.pretrained)
    config = checkpoint.config if num_classes is None else checkpoint.config.replace(num_classes=num_classes)
    return checkpoint.build(asked.apply_to(config))


def validation_of(recipe: Recipe, team: Team, classes: Sequence[str] | None = None,
                  crop: float | None = 0.875) -> Validation | None:
    """How a recipe measures a model, if it has photos for it."""
    data = recipe.data
    if not data.validation:
        return None
    photos = Photos(data.validation, data.size, labelled=True, classes=classes)
    return Validation(photos, team, min(recipe.optimization.batch, 256), data.processes, data.resident, crop)
