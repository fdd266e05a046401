"""Spans: which rows of a packed batch belong to which image."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spit.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Spans:
    """The layout of a packed batch, shared by the layers of f.

    Making it costs one host synchronisation, the only one of the backbone. Compiled code reads tensors and numbers
    that rarely change, so it is not compiled again for every batch.

    Attributes:
        offsets: image b owns rows ``offsets[b]:offsets[b + 1]``; int32, as attention kernels expect. Rows beyond the
            last offset belong to no image: no row of an image sees them, and their values mean nothing.
        image_of: the image of each row; the last one for rows of no image.
        counts: rows of each image, on the host, or empty if only the device knows; compiled code must not read them.
        longest: the largest count, or a bound on it.
        uniform: whether every image has the same number of rows.

    Shape:
        offsets ``(B + 1,)`` int32, image_of ``(ΣN,)`` int64, counts B numbers.
    """

    offsets: Tensor
    image_of: Tensor
    counts: tuple[int, ...]
    longest: int
    uniform: bool

    @staticmethod
    def of(tokens: Tokens) -> "Spans":
        """The spans of packed tokens."""
        counts = tokens.host_counts
        return Spans(tokens.offsets.to(torch.int32), tokens.image_of, counts, max(counts, default=0),
                     len(set(counts)) <= 1)

    def padded_rows(self) -> Tensor:
        """Where each row lies in a padded ``(B · longest,)`` batch, ``(ΣN,)`` int64; after it if of no image."""
        rows = torch.arange(len(self.image_of), device=self.offsets.device)
        places = rows - self.offsets[self.image_of] + self.image_of * self.longest
        return torch.where(rows < self.offsets[-1], places, len(self) * self.longest)

    def padding_mask(self) -> Tensor:
        """True on real rows of the padded batch, ``(B, 1, 1, longest)`` bool, to mask keys."""
        columns = torch.arange(self.longest, device=self.offsets.device)
        return (columns < self.offsets.diff()[:, None])[:, None, None]

    def __len__(self) -> int:
        return len(self.offsets) - 1
