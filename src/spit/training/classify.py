"""The task of classification: soft targets with CutMix and label smoothing (App. C)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from spit.model import SpitModel
from spit.training.distributed import Team
from spit.training.task import Batch, Group, decay_groups
from spit.training.validate import Validate


class Classification:
    """Cross entropy between a model's logits and the classes of photos.

    Args:
        model: with at least as many classes as the photos.
        smoothing: of the labels.
        validate: measures the model.
    """

    def __init__(self, model: SpitModel, smoothing: float = 0.0, validate: Validate | None = None) -> None:
        self.module = model
        self.smoothing = smoothing
        self._validate = validate

    def groups(self) -> Sequence[Group]:
        return decay_groups(dict(self.module.named_parameters()))

    def loss(self, network: Callable[..., Any], batch: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        logits = network(batch.draw.mix(batch.images)).float()
        targets = batch.draw.targets(batch.labels, self.module.config.num_classes, self.smoothing)
        # Of a mixed image, the right class is the one with more of the pixels.
        right = (logits.argmax(1) == targets.argmax(1)).float().mean()
        return F.cross_entropy(logits, targets), {"top1": right}

    def validate(self, team: Team) -> Mapping[str, float]:
        return {} if self._validate is None else self._validate(self.module, team)

    def product(self) -> SpitModel:
        return self.module
