"""What a run trains: the one interface between :func:`spit.training.loop.fit` and its uses.

Classification (:mod:`spit.training.classify`) is one task, distillation another. The loop owns data
order, augmentation, optimizer, schedule, EMA, checkpoints and many machines; a task owns the loss.
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
    """What a task sees in one forward pass: this process's part of the global batch.

    Attributes:
        images: cropped and augmented, as :func:`spit.training.augment.apply` gives them on the training
            device; not mixed yet.
        labels: −1 where there is none.
        draw: the random choices of these images: ``draw.mix(images)`` and ``draw.targets(labels, …)``.
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
    """Parameters that share a learning rate and a decay.

    Attributes:
        parameters: by name, as ``module.named_parameters()`` has them.
        rate: times the schedule's learning rate.
        decay: whether weight decay applies.
    """

    parameters: Mapping[str, nn.Parameter]
    rate: float = 1.0
    decay: bool = True


class Task(Protocol):
    """One thing to train."""

    @property
    def module(self) -> nn.Module:
        """All that trains, and nothing that does not: a teacher stays outside.

        What :meth:`groups` names of it is optimized and averaged (EMA), and all of its state is
        checkpointed. The loop moves it to the device, and wraps it for many processes.
        """
        ...

    def groups(self) -> Sequence[Group]:
        """Every parameter that is to change, once; :func:`decay_groups` is the usual answer."""
        ...

    def loss(self, network: Callable[..., Any], batch: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The mean loss over the batch, and figures to log.

        Called under autocast. Nothing here may wait for the device: no ``.item()``.

        Args:
            network: ``module``, or ``module`` as it is wrapped for many processes: call this one, once.

        Returns:
            A scalar, and scalars by name, each a mean over the batch: the loop weighs them by its size.
        """
        ...

    def validate(self, team: "Team") -> Mapping[str, float]:
        """Figures of the module as it now is, over all processes; empty where there is nothing to measure.

        Called in evaluation mode, with the averaged weights in place where the run keeps an average, and
        without gradients. Every process calls it and gets the same answer.
        """
        ...

    def product(self) -> "SpitModel":
        """The model to save at the end; called with the averaged weights in place."""
        ...


def decay_groups(named: Mapping[str, nn.Parameter], rate: float = 1.0) -> list[Group]:
    """Weight decay on matrices alone: none on biases, norms, scales and the class token, which have one dimension."""
    trained = {name: parameter for name, parameter in named.items() if parameter.requires_grad}
    flat = {name: parameter for name, parameter in trained.items() if parameter.ndim < 2}
    deep = {name: parameter for name, parameter in trained.items() if name not in flat}
    return [Group(group, rate, decay) for group, decay in ((deep, True), (flat, False)) if group]
