"""Spans: which rows of a packed batch belong to which image, read from the device once for all layers."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Spans:
    """The layout of a packed batch, as the layers of f need it.

    Making it costs one host synchronisation, the only one of the backbone; the layers share it.

    Attributes:
        offsets: image b owns rows ``offsets[b]:offsets[b + 1]``.
        counts: rows of each image, on the host.

    Shape:
        offsets ``(B + 1,)`` int64, counts B numbers.
    """

    offsets: Tensor
    counts: tuple[int, ...]

    @staticmethod
    def of(offsets: Tensor) -> "Spans":
        """Spans from ``(B + 1,)`` offsets."""
        return Spans(offsets, tuple(offsets.diff().tolist()))

    @property
    def uniform(self) -> bool:
        """Whether every image has the same number of rows."""
        return len(set(self.counts)) <= 1

    @property
    def longest(self) -> int:
        """Rows of the longest image."""
        return max(self.counts, default=0)

    @cached_property
    def cumulative(self) -> Tensor:
        """The offsets as attention kernels want them, ``(B + 1,)`` int32."""
        return self.offsets.to(torch.int32)

    @cached_property
    def image_of(self) -> Tensor:
        """The image each row belongs to, ``(ΣN,)`` int64."""
        images = torch.arange(len(self), device=self.offsets.device)
        return images.repeat_interleave(self.offsets.diff(), output_size=sum(self.counts))

    @cached_property
    def padded_rows(self) -> Tensor:
        """Where each row lies in a padded ``(B · longest,)`` batch, ``(ΣN,)`` int64."""
        rows = torch.arange(sum(self.counts), device=self.offsets.device)
        return rows - self.offsets[self.image_of] + self.image_of * self.longest

    @cached_property
    def padding_mask(self) -> Tensor:
        """True on real rows of the padded batch, ``(B, 1, 1, longest)`` bool, to mask keys."""
        columns = torch.arange(self.longest, device=self.offsets.device)
        return (columns < self.offsets.diff()[:, None])[:, None, None]

    def __len__(self) -> int:
        return len(self.counts)
