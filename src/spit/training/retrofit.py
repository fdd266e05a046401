"""The recipe of ``spit retrofit`` and the job that it describes."""

from dataclasses import dataclass
from pathlib import Path

from spit.data.photos import Photos
from spit.model import SpitModel
from spit.options import Options, documented, option
from spit.registry import load_model, read_checkpoint
from spit.training import TrainingError
from spit.training.augment import AugmentConfig
from spit.training.build import Job, validation_of
from spit.training.distill import Distillation, DistillConfig, patch_side, student_of
from spit.training.distributed import Team
from spit.training.recipe import DataRecipe, ModelRecipe, Optimization, Recipe


@documented
@dataclass(frozen=True)
class ParentRecipe(Options):
    """``[parent]``: the teacher."""

    weights: str = option("", "The ViT to retrofit: what spit.load_model takes")


@documented
@dataclass(frozen=True)
class RetrofitRecipe(Recipe):
    """A recipe with a parent, whose architecture the student has; ``[model.options]`` are the student's.

    The defaults are gentler than those of training from scratch.
    """

    parent: ParentRecipe = option(ParentRecipe, "The teacher")
    distill: DistillConfig = option(DistillConfig, "What the student learns from")
    data: DataRecipe = option(lambda: DataRecipe(side=224, size=224), "The photos; labels are not used")
    augment: AugmentConfig = option(
        lambda: AugmentConfig(scale=(0.25, 1.0), policies=("none",), cutmix_share=0.5), "Augmentation")
    optimization: Optimization = option(
        lambda: Optimization(epochs=20, batch=512, lr=2e-4, warmup=0.5, ema=0.999), "Optimizer and schedule")

    def job(self, team: Team) -> Job:
        data, source, compiled = self.data, self.parent.weights, self.optimization.compile
        photos = Photos(data.train, data.side)
        if not source:
            raise TrainingError("expected a parent, got none; set parent.weights, such as vit.safetensors")
        if self.model.name != ModelRecipe.name:
            raise TrainingError(f"expected no model.name in a retrofit, whose student has the parent's architecture, "
                                f"got {self.model.name}; leave it out")
        parent = load_model(source)
        student = self._student(parent)
        parent = parent.to(team.device)
        self._check_fit(parent, student)
        if compiled:
            student.compile()
            parent.compile()
        validation = validation_of(self, team, crop=student.config.eval_crop)
        if validation and not parent.config.num_classes:
            raise TrainingError(f"expected no data.validation, since {source} has no classes; leave it out")
        if validation and len(validation.photos.classes) != parent.config.num_classes:
            raise TrainingError(f"expected validation photos of the parent's {parent.config.num_classes} classes, a "
                                f"sub-folder each, got {len(validation.photos.classes)} classes")
        name = f"retrofit of {Path(source).name}"
        keep = f", {self.distill.keep:.0%} of the initial weights kept" if self.distill.keep else ""
        return Job(name, name, Distillation(student, parent, self.distill, validation, compiled, self.elastic), photos,
                   f"{student.config.tokenizer} tokens for {source}{keep}", source)

    def _student(self, parent: SpitModel) -> SpitModel:
        """The model of ``model.pretrained``, or one made from the parent, with ``[model.options]``."""
        options = {**self.model.options, **self.data.model_options()}
        if not self.model.pretrained:
            return student_of(parent, options)
        checkpoint = read_checkpoint(self.model.pretrained)
        return checkpoint.build(ModelRecipe(options=options).apply_to(checkpoint.config))

    def _check_fit(self, parent: SpitModel, student: SpitModel) -> None:
        """Raise before the first step what would fail in it."""
        patch, wanted, got = patch_side(parent), parent.config, student.config
        for name, size in (("data.size", self.data.size), *(("distill.sizes", size) for size in self.distill.sizes)):
            if size % patch:
                raise TrainingError(f"expected {name} to be a multiple of the parent's patches of {patch}, got {size}; "
                                    f"set {name}={max(size // patch, 1) * patch}")
        if (got.width, got.num_classes) != (wanted.width, wanted.num_classes):
            raise TrainingError(f"expected a student of the parent's width {wanted.width} and {wanted.num_classes} "
                                f"classes, got width {got.width} and {got.num_classes} classes in model.pretrained")
