"""The recipe of ``spit retrofit``, and the job that it describes."""

from dataclasses import dataclass
from pathlib import Path

import torch

from spit.data.photos import Photos
from spit.model import SpitModel
from spit.options import Options, documented, option
from spit.registry import load_model
from spit.training.augment import AugmentConfig
from spit.training.build import Job, pretrained_model, validation_of
from spit.training.distill import Distillation, DistillConfig, patch_side, student_of
from spit.training.distributed import Team
from spit.training.errors import TrainingError
from spit.training.recipe import DataRecipe, ModelRecipe, Optimization, Recipe
from spit.training.teachers import load_teacher
from spit.training.validate import Predict


@documented
@dataclass(frozen=True)
class ParentRecipe(Options):
    """``[parent]``: the teachers."""

    weights: str = option("", "The ViT to retrofit: what spit.load_model takes")
    second: str = option("", "Second teacher: efficientnet_lite2, or what spit.load_model takes")


@documented
@dataclass(frozen=True)
class RetrofitRecipe(Recipe):
    """A recipe with a parent, whose architecture the student has; ``[model.options]`` are the student's.

    The defaults are gentler than those of training from scratch.
    """

    parent: ParentRecipe = option(ParentRecipe, "The teachers")
    distill: DistillConfig = option(DistillConfig, "What the student learns from")
    data: DataRecipe = option(lambda: DataRecipe(side=224, size=224), "The photos; labels are not used")
    augment: AugmentConfig = option(
        lambda: AugmentConfig(scale=(0.25, 1.0), policies=("none",), cutmix_share=0.5), "Augmentation")
    optimization: Optimization = option(
        lambda: Optimization(epochs=20, batch=512, lr=2e-4, warmup=0.5, ema=0.999), "Optimizer and schedule")


def retrofit_job(recipe: RetrofitRecipe, team: Team) -> Job:
    """The job of ``spit retrofit``.

    Raises:
        TrainingError, ImageError, WeightsError, ValueError, TypeError: one line that says what to do.
    """
    data, asked = recipe.data, recipe.model
    photos = Photos(data.train, data.side)
    if not recipe.parent.weights:
        raise TrainingError("expected a parent, got none; give --parent, such as vit.safetensors")
    if asked.name != ModelRecipe.name:
        raise TrainingError(f"expected no model.name in a retrofit, whose student has the parent's architecture, got "
                            f"{asked.name}; leave it out")
    parent = load_model(recipe.parent.weights)
    student = pretrained_model(asked) if asked.pretrained else student_of(parent, asked.options)
    student.config = student.config.replace(train_size=data.size, eval_size=data.size)
    compiled = recipe.optimization.compile
    second = load_teacher(recipe.parent.second, team.device, compiled) if recipe.parent.second else None
    parent = parent.to(team.device)
    _check_fit(recipe, parent, student, second)
    if compiled:
        student.compile()
        parent.compile()
    validation = None
    if data.validation:
        held_out = Photos(data.validation, data.size, labelled=True)
        if len(held_out.classes) != parent.config.num_classes:
            raise TrainingError(f"expected validation photos of the parent's {parent.config.num_classes} classes, a "
                                f"sub-folder each, got {len(held_out.classes)} classes")
        validation = validation_of(recipe, held_out, team)
    keep = f", {recipe.distill.keep:.0%} of the initial weights kept" if recipe.distill.keep else ""
    task = Distillation(student, parent, recipe.distill, second, validation, compiled)
    return Job(f"retrofit of {Path(recipe.parent.weights).name}", task, photos,
               f"{student.config.tokenizer} tokens for {recipe.parent.weights}{keep}")


def _check_fit(recipe: RetrofitRecipe, parent: SpitModel, student: SpitModel, second: Predict | None) -> None:
    """Find before the first step what would fail in it.

    Raises:
        WeightsError: the parent has no patches.
        TrainingError: parent, student, second teacher and image size do not fit each other.
    """
    patch, size, wanted, got = patch_side(parent), recipe.data.size, parent.config, student.config
    if wanted.num_classes == 0:
        raise TrainingError(f"expected a parent with a classification head, got {recipe.parent.weights} without one")
    if size % patch:
        raise TrainingError(f"expected data.size to be a multiple of the parent's patches of {patch}, got {size}; "
                            f"--set data.size={max(size // patch, 1) * patch}")
    if (got.width, got.num_classes) != (wanted.width, wanted.num_classes):
        raise TrainingError(f"expected a student of the parent's width {wanted.width} and {wanted.num_classes} "
                            f"classes, got width {got.width} and {got.num_classes} classes in model.pretrained")
    if second is not None:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):  # the first batch compiles it, under autocast
            classes = second(torch.zeros(1, 3, patch, patch, dtype=torch.uint8, device=parent.device)).shape[1]
        if classes != wanted.num_classes:
            raise TrainingError(f"expected a second teacher of the parent's {wanted.num_classes} classes, got "
                                f"{classes} from {recipe.parent.second}")
