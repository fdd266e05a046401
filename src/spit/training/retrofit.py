"""``spit retrofit`` carried out: any pretrained patch ViT becomes a superpixel ViT, on photos without labels."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spit.data.photos import Centres, Photos
from spit.interop import from_timm
from spit.model import SpitModel
from spit.tokenizers import create_tokenizer
from spit.training import folder as folders
from spit.training.augment import AugmentConfig
from spit.training.batches import Batches
from spit.training.distill import Distillation, DistillConfig, patch_side, student_of
from spit.training.distributed import Team
from spit.training.errors import TrainingError
from spit.training.journal import Listener
from spit.training.loop import fit
from spit.training.recipe import DataRecipe, Optimization, Recipe
from spit.training.report import write_report
from spit.training.teachers import load_teacher
from spit.training.validate import Validation
from spit.weights import is_saved_model
from spit.weights import load as load_model
from spit.weights import read as read_model

NEAR_PATCHES: Mapping[str, Mapping[str, Any]] = {"superpixel": {"compactness": 0.8, "self_loop": "none"}}
"""By tokenizer, options that make its regions rounder and more equal in size, so that a patch ViT takes them for
patches sooner: docs/training.md."""


@dataclass(frozen=True)
class ParentRecipe:
    """``[parent]``: whom the student comes from, and what changes.

    Attributes:
        weights: a ViT in timm's names (.safetensors or .pth), or a folder that spit saved.
        tokenizer: the student's.
        options: of that tokenizer, as a table ``[parent.options]``, over those of :data:`NEAR_PATCHES`.
        gradients: whether the student's φ adds gradient histograms.
        fill: what the student's colour patches have where other regions are: image, mean or zero.
        second: another teacher, see :func:`spit.training.teachers.load_teacher`; "" for none.
        start: a student to go on with, a folder that spit saved, instead of one made from the parent. It has the
            tokenizer, gradients and fill that are told here, and learns with the recipe's token budget and drop path.
    """

    weights: str = ""
    tokenizer: str = "superpixel"
    options: Mapping[str, Any] = field(default_factory=dict)
    gradients: bool = True
    fill: str = "image"
    second: str = ""
    start: str = ""


@dataclass(frozen=True)
class RetrofitRecipe(Recipe):
    """A recipe with a parent; ``[model]`` is not read. What a parent knows needs less of everything to keep."""

    parent: ParentRecipe = field(default_factory=ParentRecipe)
    distill: DistillConfig = field(default_factory=DistillConfig)
    data: DataRecipe = field(default_factory=lambda: DataRecipe(side=224, size=224))
    augment: AugmentConfig = field(default_factory=lambda: AugmentConfig(
        scale=(0.25, 1.0), policies=("none",), cutmix_share=0.5))
    optimization: Optimization = field(default_factory=lambda: Optimization(
        epochs=20, batch=512, lr=2e-4, warmup=0.5, ema=0.999, drop_path=0.0))


def load_parent(path: str) -> SpitModel:
    """The ViT to start from.

    Raises:
        TrainingError: none was named.
        WeightsError: it cannot be read, or is another architecture.
    """
    if not path:
        raise TrainingError("expected a parent, got none; give --parent vit.safetensors")
    return load_model(path) if is_saved_model(Path(path)) else from_timm(path)


def retrofit(recipe: RetrofitRecipe, folder: Path, team: Team, listener: Listener) -> dict[str, Any]:
    """Carry out a retrofit in a folder that is prepared for it; see :func:`spit.training.train.train`."""
    data, optimization = recipe.data, recipe.optimization
    if not data.train:
        raise TrainingError("expected photos to learn from, got none; give --images FOLDER")
    photos = Photos(data.train, data.side)
    parent = load_parent(recipe.parent.weights)
    student = (_start(recipe) if recipe.parent.start else student_of(
        parent, recipe.parent.tokenizer, {**NEAR_PATCHES.get(recipe.parent.tokenizer, {}), **recipe.parent.options},
        recipe.parent.gradients, optimization.token_budget or None, optimization.drop_path, recipe.parent.fill))
    student.config = student.config.replace(image_size=data.size)
    second: Callable[[Tensor], Tensor] | None = (
        load_teacher(recipe.parent.second, team.device, optimization.compile) if recipe.parent.second else None)
    parent = parent.to(team.device)
    _refuse(recipe, parent, student, second)
    if optimization.compile:
        student.compile()
        parent.compile()
    validation = None
    if data.validation:
        held_out = Photos(data.validation, data.size, labelled=True)
        if len(held_out.classes) != parent.config.num_classes:
            raise TrainingError(f"expected validation photos of the parent's {parent.config.num_classes} classes, a "
                                f"sub-folder each, got {len(held_out.classes)} classes")
        validation = Validation(Centres(held_out, data.size), team, min(optimization.batch, 256), data.workers,
                                data.resident)
    keep = f", {recipe.distill.keep:.0%} of the beginning kept" if recipe.distill.keep else ""
    listener.say(f"{student.config.tokenizer} tokens for {recipe.parent.weights}, {len(photos):,} photos, on "
                 f"{team.size} × {team.device.type}{keep}")
    batches = Batches(photos, optimization.batch, recipe.run.seed, team.device, data.workers, data.resident,
                      Path(data.kept) if data.kept else None)

    def measure(student: SpitModel, team: Team) -> Mapping[str, float]:
        return {} if validation is None else validation(lambda images: student(images).to(torch.float32), team)

    task = Distillation(student, parent, recipe.distill, second, measure, optimization.compile)
    outcome = fit(task, batches, folder, team, size=data.size, augment=recipe.augment, optimization=optimization,
                  run=recipe.run, listener=listener, about={"recipe": recipe.to_dict()})
    if not team.first:
        return {}
    name = f"retrofit of {Path(recipe.parent.weights).name}"
    result = {**asdict(outcome), "name": name, "model": str(outcome.model), "photos": len(photos)}
    write_report(folder, recipe.to_dict(), result, listener.say)
    folders.write_result(folder, result)
    return result


def _start(recipe: RetrofitRecipe) -> SpitModel:
    """The student to go on with.

    Raises:
        TrainingError: it is another than the recipe says.
    """
    said, saved = recipe.parent, read_model(recipe.parent.start)
    student = saved.build(saved.config.replace(token_budget=recipe.optimization.token_budget or None,
                                               drop_path=recipe.optimization.drop_path))
    options = create_tokenizer(student.config.tokenizer, **student.config.tokenizer_options).config()
    has = {**student.config.to_dict(), **{f"options.{key}": value for key, value in options.items()}}
    wanted = {"tokenizer": said.tokenizer, "gradients": said.gradients, "fill": said.fill,
              **{f"options.{key}": value for key, value in said.options.items()}}
    for key, value in wanted.items():
        if has.get(key) != value:
            raise TrainingError(f"expected parent.start with parent.{key} {value}, got {has.get(key, 'none')} in "
                                f"{said.start}; set parent.{key} to that, or leave parent.start out")
    return student


def _refuse(recipe: RetrofitRecipe, parent: SpitModel, student: SpitModel,
            second: Callable[[Tensor], Tensor] | None) -> None:
    """What would only show in the first step, or never.

    Raises:
        WeightsError: the parent has no patches.
        TrainingError: parent, student, teacher and size of the images do not fit each other.
    """
    patch, wanted = patch_side(parent), parent.config
    size = recipe.data.size
    if wanted.num_classes == 0:
        raise TrainingError(f"expected a parent with a classification head, got {recipe.parent.weights} without one")
    if size % patch:
        raise TrainingError(f"expected data.size to be a multiple of the parent's patches of {patch}, got {size}; "
                            f"--set data.size={max(size // patch, 1) * patch}")
    if (student.config.width, student.config.num_classes) != (wanted.width, wanted.num_classes):
        raise TrainingError(f"expected parent.start of the parent's width {wanted.width} and {wanted.num_classes} "
                            f"classes, got width {student.config.width} and {student.config.num_classes} classes")
    if second is not None:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):  # the first batch compiles it, under autocast
            device = parent.embedder.class_token.device
            classes = second(torch.zeros(1, 3, patch, patch, dtype=torch.uint8, device=device)).shape[1]
        if classes != wanted.num_classes:
            raise TrainingError(f"expected a second teacher of the parent's {wanted.num_classes} classes, got "
                                f"{classes} from {recipe.parent.second}")
