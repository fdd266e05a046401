"""Accuracy on held-out photos, each counted once over all processes."""

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset

from spit.data.photos import Centres, Photos, to_device
from spit.interruption import leave_to_parent
from spit.training.distributed import Team

Predict = Callable[[Tensor], Tensor]
"""From images ``(B, 3, size, size)`` uint8 on the device to logits ``(B, num_classes)``; a model is one."""
Validate = Callable[[Predict], Mapping[str, float]]


class Validation:
    """Measures a model on the central squares of photos, or on whole photos.

    Process r of n takes photos r, r + n, r + 2n, …; sums are added over all processes.

    Args:
        photos: with labels, and the side that the model sees.
        batch: photos of a forward pass.
        workers: decoding processes.
        resident: decode this process's photos once, into the memory of its device.
        crop: see :func:`~spit.data.crops.central_square`.
    """

    def __init__(self, photos: Photos, team: Team, batch: int = 256, workers: int = 0, resident: bool = False,
                 crop: float | None = 0.875) -> None:
        self.photos, self.team, self.batch, self.workers = photos, team, batch, workers
        self.own = Subset(Centres(photos, crop), range(team.rank, len(photos), team.size))
        self.resident = to_device(self.own, team.device, workers) if resident and len(self.own) else None
        photos.check()

    @torch.no_grad()
    def __call__(self, predict: Predict) -> dict[str, float]:
        """Top-1, top-5 if there are more than five classes, cross entropy, and the number of photos."""
        classes = 0
        sums = torch.zeros(4, dtype=torch.float64, device=self.team.device)
        for images, labels in self._batches():
            logits = predict(images)
            classes = logits.shape[1]
            sums += score(logits, labels)
        first, five, loss, count = self.team.sum(sums).tolist()
        count = max(count, 1)
        fives = {"top5": five / count} if classes > 5 else {}
        return {"top1": first / count, **fives, "loss": loss / count, "images": count}

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        if self.resident is not None:
            images, _, labels = self.resident
            yield from zip(images.split(self.batch), labels.split(self.batch), strict=True)
        elif len(self.own):
            device = self.team.device
            loader = DataLoader(self.own, self.batch, num_workers=self.workers, pin_memory=device.type == "cuda",
                                worker_init_fn=leave_to_parent)
            for images, _, labels in loader:
                self.photos.check()
                yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def score(logits: Tensor, labels: Tensor) -> Tensor:
    """Top-1 hits, top-5 hits, summed cross entropy, and the number of photos counted.

    Shape:
        logits ``(B, num_classes)``, labels ``(B,)`` with −1 for photos that do not count; ``(4,)`` float64.
    """
    logits = logits.float()
    right = logits.topk(min(5, logits.shape[1])).indices == labels[:, None]  # never equal to −1
    loss = F.cross_entropy(logits, labels, ignore_index=-1, reduction="sum")
    return torch.stack([right[:, 0].sum(), right.sum(), loss, (labels >= 0).sum()]).double()
