"""Tokens: what travels from φ to h, a packed ragged batch without padding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from spit.wording import plural


class Packed:
    """Rows of several images, one image after another: image b owns rows ``offsets[b]:offsets[b + 1]``."""

    offsets: Tensor

    @property
    def counts(self) -> Tensor:
        """Rows of each image, ``(B,)``."""
        return self.offsets.diff()

    @cached_property
    def host_counts(self) -> tuple[int, ...]:
        """:attr:`counts` on the host; the first look waits for a GPU, unless they were known before."""
        return tuple(self.counts.tolist())

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class Tokens(Packed):
    """The tokens of a batch of images, one image after another.

    Attributes:
        values: one row per token.
        offsets: image b owns rows ``offsets[b]:offsets[b + 1]``.

    Shape:
        values ``(ΣN, D)``, offsets ``(B + 1,)`` int64 on the same device.

    Example:
        >>> import torch
        >>> from spit import Tokens
        >>> tokens = Tokens(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([0, 2, 3]))
        >>> tokens
        Tokens(2 images, values (3, 1) torch.float32)
        >>> tokens.counts.tolist(), tokens.image_of.tolist()
        ([2, 1], [0, 0, 1])
        >>> [image.flatten().tolist() for image in tokens]
        [[1.0, 2.0], [3.0]]
        >>> tokens.select(torch.tensor([True, False, True])).offsets.tolist()
        [0, 1, 2]
    """

    values: Tensor
    offsets: Tensor

    def __post_init__(self) -> None:
        """Check shapes, dtype and device, but no values: that would wait for a GPU."""
        if self.values.ndim != 2 or self.offsets.ndim != 1:
            raise ValueError("expected values of shape (ΣN, D) and offsets of shape (B + 1,), got "
                             f"{tuple(self.values.shape)} and {tuple(self.offsets.shape)}")
        if self.offsets.dtype != torch.int64:
            raise TypeError(f"expected int64 offsets, got {self.offsets.dtype}; call offsets.long()")
        if self.offsets.device != self.values.device:
            raise ValueError(f"expected values and offsets on one device, got {self.values.device} and "
                             f"{self.offsets.device}")

    @property
    def image_of(self) -> Tensor:
        """The image each token belongs to, ``(ΣN,)``."""
        images = torch.arange(len(self), device=self.values.device)
        return images.repeat_interleave(self.counts, output_size=len(self.values))

    @property
    def first(self) -> Tensor:
        """The first token of each image, ``(B, D)``: where a class token comes first, the class tokens."""
        return self.values[self.offsets[:-1]]

    def replace(self, values: Tensor) -> "Tokens":
        """The same tokens with other values."""
        return Tokens(values, self.offsets).with_counts(self.known_counts)

    def select(self, keep: Tensor, counts: Sequence[int] | None = None) -> "Tokens":
        """The tokens where ``keep`` is true, in order; an image may lose all of them.

        Args:
            keep: ``(ΣN,)`` bool.
            counts: how many it keeps of each image, if that is known: a GPU is not waited for then.
        """
        kept = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.cumsum(0)])
        if counts is None:
            return Tokens(self.values[keep], kept[self.offsets])
        total = sum(counts)
        rows = torch.empty(total + 1, dtype=torch.int64, device=keep.device)  # the last for those that are not kept
        rows[torch.where(keep, kept[:-1], total)] = torch.arange(len(keep), device=keep.device)
        return Tokens(self.values[rows[:total]], kept[self.offsets]).with_counts(tuple(counts))

    @property
    def known_counts(self) -> tuple[int, ...] | None:
        """:attr:`host_counts` if they are known, without waiting for a GPU."""
        return self.__dict__.get("host_counts")

    def with_counts(self, counts: tuple[int, ...] | None) -> "Tokens":
        """These tokens, which now know their counts on the host if any are given."""
        if counts is not None:
            self.__dict__["host_counts"] = counts
        return self

    def split(self) -> tuple[Tensor, ...]:
        """One ``(N, D)`` tensor per image."""
        return torch.split(self.values, list(self.host_counts))

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.split())

    def __repr__(self) -> str:
        return f"Tokens({plural(len(self), 'image')}, values {tuple(self.values.shape)} {self.values.dtype})"

    @staticmethod
    def one_each(values: Tensor) -> "Tokens":
        """One token for each image, from ``(B, D)`` rows."""
        return Tokens(values, torch.arange(len(values) + 1, device=values.device)).with_counts((1,) * len(values))

    @staticmethod
    def cat(parts: Sequence["Tokens"]) -> "Tokens":
        """The images of several batches one after another."""
        if len(parts) == 1:
            return parts[0]
        return Tokens(torch.cat([part.values for part in parts]), cat_offsets([part.offsets for part in parts]))


def offsets_of(counts: Tensor) -> Tensor:
    """``(B,)`` counts to ``(B + 1,)`` offsets, from 0."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def cat_offsets(parts: Sequence[Tensor]) -> Tensor:
    """The offsets of several batches laid end to end."""
    return offsets_of(torch.cat([part.diff() for part in parts]))
