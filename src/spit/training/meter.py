"""Metrics of training, summed on the device and read every few steps."""

from collections.abc import Mapping

import torch
from torch import Tensor

from spit.training.distributed import Team


class Meter:
    """Means over the images of all processes since the last :meth:`read`, which alone waits for the device."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.names: list[str] = []
        self._passes: list[Tensor] = []  # of the current step: the number of images, and their sum of each metric
        self._sums: Tensor | None = None
        self._skipped, self._row, self._longest = torch.zeros(3, device=team.device)  # steps; a row ends at this one

    def add(self, figures: Mapping[str, Tensor], images: int) -> None:
        """Add one forward pass: means over so many images."""
        self.names = list(figures)
        values = [figure.detach().double() for figure in figures.values()]
        self._passes.append(torch.stack([torch.ones_like(values[0]), *values]) * images)

    def end_step(self, good: Tensor) -> None:
        """Keep what was added since the last step, or drop it if ``good`` is 0: the step was skipped."""
        total = torch.where(good > 0, torch.stack(self._passes).sum(0), 0)
        self._sums = total if self._sums is None else self._sums + total
        self._passes = []
        self._skipped = self._skipped + 1 - good
        self._row = torch.where(good > 0, 0, self._row + 1)
        self._longest = torch.maximum(self._longest, self._row)

    def read(self) -> tuple[dict[str, float], int, int]:
        """Means, skipped steps, and the longest run of skipped steps; then start again."""
        images, *sums = [0.0] if self._sums is None else self.team.sum(self._sums).tolist()
        skipped, longest = (int(count) for count in torch.stack([self._skipped, self._longest]).tolist())
        means = {name: value / images for name, value in zip(self.names, sums, strict=True)} if images else {}
        self._sums, self._skipped, self._longest = None, torch.zeros_like(self._skipped), self._row
        return means, skipped, longest
