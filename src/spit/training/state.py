"""What a run has learned so far: weights, their average, and the optimizer's moments, by name."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from spit.training.errors import TrainingError
from spit.training.task import Group


class State:
    """All that changes from step to step.

    There is no state of random numbers: each step seeds its own, as a function of (seed, step, rank).

    Args:
        module: on its device.
        groups: its parameters that change.
        betas, eps, decay: of AdamW.
        average: decay of the exponential moving average of the parameters, kept in float32; 0 keeps none.
            In the first steps t it is (1 + t)/(10 + t) where that is less.
    """

    def __init__(self, module: nn.Module, groups: Sequence[Group], betas: tuple[float, float], eps: float,
                 decay: float, average: float) -> None:
        self.module = module
        self.rates = [group.rate for group in groups]
        self.named = {name: parameter for group in groups for name, parameter in group.parameters.items()}
        if sum(len(group.parameters) for group in groups) != len(self.named):
            raise ValueError("expected every parameter in one group, got one in several")
        self.parameters = list(self.named.values())
        self.optimizer = torch.optim.AdamW(
            [{"params": list(group.parameters.values()), "weight_decay": decay if group.decay else 0.0}
             for group in groups], lr=0.0, betas=betas, eps=eps, fused=True)
        for parameter in self.parameters:  # as AdamW itself begins, but now, so that a checkpoint finds its place
            self.optimizer.state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter), "exp_avg_sq": torch.zeros_like(parameter)}
        self.average = average
        self.averages = [parameter.detach().float().clone() for parameter in self.parameters] if average else []

    def tensors(self) -> dict[str, Tensor]:
        """Everything, by name; not copies."""
        answer = {f"module.{name}": tensor for name, tensor in self.module.state_dict().items()}
        answer |= {f"average.{name}": tensor for name, tensor in zip(self.named, self.averages, strict=False)}
        for name, parameter in self.named.items():
            answer |= {f"{key}.{name}": tensor for key, tensor in self.optimizer.state[parameter].items()}
        return answer

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take everything back, in place.

        Raises:
            TrainingError: the tensors are those of another run.
        """
        own = self.tensors()
        for name in sorted(own.keys() ^ tensors.keys()):
            raise TrainingError(f"the checkpoint is of another model or task: {name} is only in one of them; choose "
                                "another folder")
        for name, tensor in own.items():
            if tensor.shape != tensors[name].shape:
                raise TrainingError(f"the checkpoint is of another model or task: expected {name} "
                                    f"{tuple(tensor.shape)}, got {tuple(tensors[name].shape)}; choose another folder")
            tensor.copy_(tensors[name])

    def update(self, rate: float, step: int, clip: float) -> Tensor:
        """One step of AdamW on the gradients that are there; none where they are not finite.

        The host waits for nothing: whether to take the step, and by how much to shorten its gradients, is
        handed to the fused optimizer on the device, as loss scaling does.

        Returns:
            Whether the step was taken, a scalar of 0 or 1 on the device.
        """
        for group, factor in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        good = norm.isfinite().float()
        # torch.amp.GradScaler sets the same two attributes.
        self.optimizer.found_inf = 1 - good  # type: ignore[attr-defined]
        self.optimizer.grad_scale = (norm / clip).clamp_min(1) if clip else None  # type: ignore[attr-defined]
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.average:
            kept = min(self.average, (1 + step) / (10 + step))
            torch._foreach_lerp_(self.averages, [p.detach() for p in self.parameters], 1 - kept)
        return good

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The averages in the parameters' place, for as long as it lasts; nothing where there are none."""
        with torch.no_grad():
            before = [parameter.clone() for parameter in self.parameters] if self.averages else []
            for parameter, average in zip(self.parameters, self.averages, strict=False):
                parameter.copy_(average)
            try:
                yield
            finally:
                for parameter, tensor in zip(self.parameters, before, strict=False):
                    parameter.copy_(tensor)
