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
        self._figures = torch.zeros(0, device=team.device)  # of the current step
        self._sums = torch.zeros(0, device=team.device)
        self._images = torch.zeros((), dtype=torch.float64, device=team.device)
        self._skipped = torch.zeros((), device=team.device)
        self._row = torch.zeros((), device=team.device)  # skipped steps in a row, up to this one
        self._longest = torch.zeros((), device=team.device)
        self._seen = 0

    def add(self, figures: Mapping[str, Tensor], images: int) -> None:
        """Add one forward pass: means over so many images."""
        if not self.names:
            self.names = list(figures)
            self._figures = torch.zeros(len(self.names), dtype=torch.float64, device=self.team.device)
            self._sums = self._figures.clone()
        values = torch.stack([figures[name].detach().double() for name in self.names])
        self._figures = self._figures + values * images
        self._seen += images

    def end_step(self, good: Tensor) -> None:
        """Keep what was added since the last step, or drop it if ``good`` is 0: the step was skipped."""
        taken = good > 0
        self._sums += torch.where(taken, self._figures, 0)
        self._images += torch.where(taken, self._seen, 0)
        self._skipped += 1 - good
        self._row = torch.where(taken, 0, self._row + 1)
        self._longest = torch.maximum(self._longest, self._row)
        self._figures = torch.zeros_like(self._figures)
        self._seen = 0

    def read(self) -> tuple[dict[str, float], int, int]:
        """Means, skipped steps, and the longest run of skipped steps; then start again."""
        images, *sums = self.team.sum(torch.cat([self._images[None], self._sums])).tolist()
        skipped, longest = (int(count) for count in torch.stack([self._skipped, self._longest]).tolist())
        means = {name: value / images for name, value in zip(self.names, sums, strict=True)} if images else {}
        self._sums.zero_()
        self._images.zero_()
        self._skipped.zero_()
        self._longest.copy_(self._row)
        return means, skipped, longest
