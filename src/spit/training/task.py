"""Task: the interface between :func:`spit.training.loop.fit` and what it trains.

A task owns the loss; the loop owns data order, augmentation, optimizer, schedule, EMA, checkpoints and processes.
:mod:`spit.training.classify` and :mod:`spit.training.distill` are the two tasks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor, nn

if TYPE_CHECKING:
    from spit.model import SpitModel
    from spit.training.augment import Draw
    from spit.training.distributed import Team


@dataclass(frozen=True)
class Batch:
    """The input of one forward pass: this process's part of the global batch.

    Attributes:
        images: cropped and augmented, on the training device, not mixed yet.
        labels: −1 for none.
        draw: the random numbers of these images: ``draw.mix(images)`` and ``draw.targets(labels, …)``.
        step: of the run, from 0.

    Shape:
        images ``(B, 3, size, size)`` uint8, labels ``(B,)`` int64.
    """

    images: Tensor
    labels: Tensor
    draw: "Draw"
    step: int


@dataclass(frozen=True)
class Group:
    """Parameters with a common learning rate and weight decay.

    Attributes:
        parameters: by name, as in ``module.named_parameters()``.
        rate: factor of the schedule's learning rate.
        decay: whether weight decay applies.
    """

    parameters: Mapping[str, nn.Parameter]
    rate: float = 1.0
    decay: bool = True


class Task(Protocol):
    """Something to train."""

    @property
    def module(self) -> nn.Module:
        """The module that trains, without teachers. The loop moves it, wraps it and checkpoints its state."""
        ...

    def groups(self) -> Sequence[Group]:
        """Every parameter that changes, once; see :func:`decay_groups`."""
        ...

    def loss(self, network: Callable[..., Any], batch: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The mean loss over the batch, and scalars to log by name, each a mean over the batch.

        Called under autocast. It must not wait for the device: no ``.item()``.

        Args:
            network: ``module``, or its wrapper for many processes; call it once.
        """
        ...

    def validate(self, team: "Team") -> Mapping[str, float]:
        """Metrics over all processes, the same in each; empty without validation photos.

        Called in evaluation mode, without gradients and with the averaged weights.
        """
        ...

    def product(self) -> "SpitModel":
        """The model to save at the end; called with the averaged weights."""
        ...


def decay_groups(named: Mapping[str, nn.Parameter], rate: float = 1.0) -> list[Group]:
    """Weight decay for matrices only: biases, norms, scales and the class token have one dimension and none."""
    trained = {name: parameter for name, parameter in named.items() if parameter.requires_grad}
    flat = {name: parameter for name, parameter in trained.items() if parameter.ndim < 2}
    deep = {name: parameter for name, parameter in trained.items() if name not in flat}
    return [Group(group, rate, decay) for group, decay in ((deep, True), (flat, False)) if group]
