"""Task: what :func:`spit.training.loop.fit` trains.

A task owns the model and its loss; the loop owns data order, augmentation, optimizer, schedule, EMA, checkpoints and
processes. The two tasks are :class:`Classification` and :class:`spit.training.distill.Distillation`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from spit.model import SpitModel
from spit.training.batches import Batch
from spit.training.elastic import Elastic, ElasticConfig
from spit.training.validate import Validate


@dataclass(frozen=True)
class Group:
    """Parameters by name, the factor of their learning rate, and whether weight decay applies."""

    parameters: Mapping[str, nn.Parameter]
    rate: float = 1.0
    decay: bool = True


class Task(ABC):
    """A model and its loss.

    Args:
        module: the model that trains, without teachers. The loop moves it, wraps it and checkpoints its state.
        measure: validates :meth:`product`.
        elastic: how images are tokenized beside the model's own way.
    """

    def __init__(self, module: SpitModel, measure: Validate | None = None,
                 elastic: ElasticConfig | None = None) -> None:
        self.module, self.measure = module, measure
        self.elastic = Elastic(module, elastic or ElasticConfig())

    def groups(self) -> list[Group]:
        """Every parameter that changes, once."""
        return decay_groups(dict(self.module.named_parameters()))

    @abstractmethod
    def loss(self, network: Callable[..., Any], batch: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The mean loss over an augmented batch, and scalars to log by name, each a mean over the batch.

        Called under autocast. It must not wait for the device: no ``.item()``.

        Args:
            network: ``module``, or its wrapper for many processes; call it once.
        """

    def validate(self) -> Mapping[str, float]:
        """Metrics over all processes, the same in each; empty without validation photos.

        Called in evaluation mode, without gradients and with the averaged weights.
        """
        return {} if self.measure is None else self.measure(self.product())

    def product(self) -> SpitModel:
        """The model to validate and save; called with the averaged weights."""
        return self.module


class Classification(Task):
    """Cross entropy between logits and the classes of photos: soft targets with CutMix and label smoothing (App. C)."""

    def __init__(self, module: SpitModel, smoothing: float = 0.0, measure: Validate | None = None,
                 elastic: ElasticConfig | None = None) -> None:
        super().__init__(module, measure, elastic)
        self.smoothing = smoothing

    def loss(self, network: Callable[..., Any], batch: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        with self.elastic.drawn(len(batch)):
            logits = network(batch.draw.mix(batch.images)).float()
        targets = batch.draw.targets(batch.labels, self.module.config.num_classes, self.smoothing)
        # Of a mixed image, the right class is the one with more of the pixels.
        right = (logits.argmax(1) == targets.argmax(1)).float().mean()
        return F.cross_entropy(logits, targets), {"top1": right}


def decay_groups(named: Mapping[str, nn.Parameter], rate: float = 1.0) -> list[Group]:
    """Weight decay for matrices only: biases, norms, scales and the class token have one dimension and none."""
    trained = {name: parameter for name, parameter in named.items() if parameter.requires_grad}
    groups = [Group({name: parameter for name, parameter in trained.items() if (parameter.ndim > 1) == decay}, rate,
                    decay) for decay in (True, False)]
    return [group for group in groups if group.parameters]
