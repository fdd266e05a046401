"""Tokens: what travels from φ to h, a packed ragged batch without padding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Tokens:
    """The tokens of a batch, end to end.

    Attributes:
        values: one row a token.
        offsets: image b owns rows ``offsets[b]:offsets[b + 1]``.

    Shape:
        values ``(ΣN, D)``, offsets ``(B + 1,)`` int64 on the same device.
    """

    values: Tensor
    offsets: Tensor

    @property
    def counts(self) -> Tensor:
        """Tokens in each image, ``(B,)``."""
        return self.offsets.diff()

    @property
    def image_of(self) -> Tensor:
        """The image each token belongs to, ``(ΣN,)``."""
        images = torch.arange(len(self), device=self.values.device)
        return images.repeat_interleave(self.counts, output_size=len(self.values))

    def replace(self, values: Tensor) -> "Tokens":
        """Other values for the same tokens."""
        return Tokens(values, self.offsets)

    def select(self, keep: Tensor) -> "Tokens":
        """The tokens where ``keep`` is true, in order; an image may lose all of them.

        Shape:
            keep ``(ΣN,)`` bool.
        """
        kept = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.cumsum(0)])
        return Tokens(self.values[keep], kept[self.offsets])

    def split(self) -> tuple[Tensor, ...]:
        """One ``(N, D)`` tensor an image."""
        return torch.split(self.values, self.counts.tolist())

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.split())

    def __repr__(self) -> str:
        return f"Tokens({plural(len(self), 'image')}, values {tuple(self.values.shape)} {self.values.dtype})"

    @staticmethod
    def cat(parts: Sequence["Tokens"]) -> "Tokens":
        """The images of several batches one after another."""
        if len(parts) == 1:
            return parts[0]
        return Tokens(torch.cat([part.values for part in parts]), cat_offsets([part.offsets for part in parts]))


def plural(count: int, noun: str) -> str:
    """``1 image``, ``2 images``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def offsets_of(counts: Tensor) -> Tensor:
    """``(B,)`` counts to ``(B + 1,)`` offsets, from 0."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def cat_offsets(parts: Sequence[Tensor]) -> Tensor:
    """The offsets of several batches laid end to end."""
    return offsets_of(torch.cat([part.diff() for part in parts]))
