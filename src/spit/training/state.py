"""The state of a run: weights, their average, and the moments of the optimizer, by name."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from spit.training.recipe import Optimization
from spit.training.task import Group
from spit.weights import check_tensors


class State:
    """Everything that changes from step to step. Random generators do not: each step is seeded anew.

    Args:
        module: on its device.
        groups: its parameters that change.
        asked: AdamW's options, and ``ema``: the decay of the average of the parameters, which is kept in float32. At
            step t it is at most (1 + t)/(10 + t).
    """

    def __init__(self, module: nn.Module, groups: Sequence[Group], asked: Optimization) -> None:
        self.module, self.asked = module, asked
        self.rates = [group.rate for group in groups]
        self.named = {name: parameter for group in groups for name, parameter in group.parameters.items()}
        if sum(len(group.parameters) for group in groups) != len(self.named):
            raise ValueError("expected every parameter in one group, got one in several")
        self.parameters = list(self.named.values())
        self.optimizer = torch.optim.AdamW(
            [{"params": list(group.parameters.values()), "weight_decay": asked.weight_decay if group.decay else 0.0}
             for group in groups], lr=0.0, betas=asked.betas, eps=asked.eps, fused=True)
        for parameter in self.parameters:  # as AdamW starts, but now, so that a checkpoint can be restored
            self.optimizer.state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter), "exp_avg_sq": torch.zeros_like(parameter)}
        self.averages = [parameter.detach().float().clone() for parameter in self.parameters] if asked.ema else []

    def tensors(self) -> dict[str, Tensor]:
        """Everything by name, without copies."""
        tensors = {f"module.{name}": tensor for name, tensor in self.module.state_dict().items()}
        tensors |= {f"average.{name}": tensor for name, tensor in zip(self.named, self.averages, strict=False)}
        for name, parameter in self.named.items():
            tensors |= {f"{key}.{name}": tensor for key, tensor in self.optimizer.state[parameter].items()}
        return tensors

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy everything back in place.

        Raises:
            WeightsError: the tensors are of another run.
        """
        own = self.tensors()
        check_tensors("the checkpoint is of another model or task; choose another folder", own, tensors)
        for name, tensor in own.items():
            tensor.copy_(tensors[name])

    def update(self, rate: float, step: int) -> Tensor:
        """Take a step of AdamW, or skip it if the gradients are not finite.

        The host does not wait: the fused optimizer reads on the device whether to skip and how much to clip, as it
        does for loss scaling.

        Returns:
            1 if the step was taken, else 0: a scalar on the device.
        """
        for group, factor in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        good = norm.isfinite().float()
        clip = self.asked.clip
        # torch.amp.GradScaler sets the same two attributes.
        self.optimizer.found_inf = 1 - good  # type: ignore[attr-defined]
        self.optimizer.grad_scale = (norm / clip).clamp_min(1) if clip else None  # type: ignore[attr-defined]
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.averages:
            kept = min(self.asked.ema, (1 + step) / (10 + step))
            torch._foreach_lerp_(self.averages, [p.detach() for p in self.parameters], 1 - kept)
        return good

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """A context with the averages in place of the parameters, if there are averages."""
        with torch.no_grad():
            before = [parameter.clone() for parameter in self.parameters] if self.averages else []
            for parameter, average in zip(self.parameters, self.averages, strict=False):
                parameter.copy_(average)
            try:
                yield
            finally:
                for parameter, tensor in zip(self.parameters, before, strict=False):
                    parameter.copy_(tensor)
