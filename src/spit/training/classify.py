"""Classification as a task: soft targets under CutMix and label smoothing (App. C)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.model import SpitModel
from spit.training.distributed import Team
from spit.training.task import Batch, Group, decay_groups
from spit.training.validate import Validation


class Classification:
    """Cross entropy between a model's logits and the classes of photos.

    Args:
        model: with as many classes as the photos have, or more.
        smoothing: of the labels.
        validation: held-out photos; None validates nothing.
    """

    def __init__(self, model: SpitModel, smoothing: float = 0.0, validation: Validation | None = None) -> None:
        self.module = model
        self.smoothing = smoothing
        self.validation = validation

    def groups(self) -> Sequence[Group]:
        return decay_groups(dict(self.module.named_parameters()))

    def loss(self, network: Callable[..., Any], batch: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        logits = network(batch.draw.mix(batch.images)).float()
        targets = batch.draw.targets(batch.labels, self.module.config.num_classes, self.smoothing)
        # Under CutMix the first guess is right where it names the class that has more of the image.
        right = (logits.argmax(1) == targets.argmax(1)).float().mean()
        return F.cross_entropy(logits, targets), {"top1": right}

    def validate(self, team: Team) -> Mapping[str, float]:
        return {} if self.validation is None else self.validation(self._predict, team)

    def product(self) -> SpitModel:
        return self.module

    def _predict(self, images: Tensor) -> Tensor:
        logits: Tensor = self.module(images)
        return logits.to(torch.float32)
