"""Spans: which rows of a packed batch belong to which image."""

from dataclasses import dataclass

import torch
from torch import Tensor

from spit.replay import STEP, round_up, step_of
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

    def rounded(self) -> "Spans":
        """The same images, and others behind them whose rows make a round number, from 1 to STEP each.

        CUDA graphs are recorded for a number of rows and of images. Rows of such images are computed like others, so
        they must be finite; in training, unlike rows of no image, they add nothing to any gradient.
        """
        count, step = len(self.image_of), step_of(len(self.image_of))
        images = step // STEP + 1
        excess = round_up(count + images, step) - count
        ends, rows = (torch.arange(1, many + 1, device=self.offsets.device) for many in (images, excess))
        offsets = torch.cat([self.offsets, (count + ends * excess // images).to(self.offsets.dtype)])
        image_of = torch.cat([self.image_of, len(self) + (rows * images - 1) // excess])
        return Spans(offsets, image_of, (), round_up(max(self.longest, STEP), STEP), False)

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
