"""The count law (App. B): how many superpixels at each level."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from PIL import Image
from torch import Tensor

from spit.data.images import load_image
from spit.documents import Sheet
from spit.evaluation.intervals import Score, mean
from spit.evaluation.runner import Case, Protocol, Record, Runner
from spit.evaluation.samples import Sample
from spit.tokenizers import NestedTokenizer, SuperpixelTokenizer
from tables.threshold import PAPER as MERGED
from tables.threshold import PAPER_SIZE

PAPER = {  # Table "empirical_spsizes": means over the training images of ImageNet at levels 1 to 4
    224: (11940.278, 3155.512, 794.650, 197.411),
    256: (15496.020, 4097.510, 1031.727, 256.051),
    384: (34084.297, 9047.289, 2287.822, 567.69),
}
Interpolation = Literal["bicubic", "bilinear"]


@dataclass(frozen=True)
class Row:
    """One level at one size: the mean over the images, and the paper's if it has one."""

    size: int
    level: int
    regions: Score
    paper: float | None

    @property
    def change(self) -> float | None:
        """Relative difference from the paper's mean."""
        return None if self.paper is None else self.regions.value / self.paper - 1


@dataclass(frozen=True)
class CountCase(Case):
    """The number of regions at every level, of squares of one size."""

    tokenizer: NestedTokenizer
    size: int
    device: torch.device
    interpolation: Interpolation = "bicubic"

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.size}²"

    def config(self) -> dict[str, Any]:
        return {"tokenizer": self.tokenizer.config(), "size": self.size, "interpolation": self.interpolation}

    def measure(self, samples: Sequence[Sample], runner: Runner) -> Generator[list[Record]]:
        for chunk, loaded in runner.read(samples, lambda sample: square(sample.image, self.size, self.interpolation),
                                         self.device):
            counts = self.tokenizer.hierarchy(torch.stack(loaded).to(self.device)).counts[1:].T.tolist()  # (B, T)
            yield [{"key": sample.key, "image": sample.name, "size": self.size, "counts": levels}
                   for sample, levels in zip(chunk, counts, strict=True)]

    def paper(self, level: int) -> float | None:
        """The paper's count at a level; after the last, that of its final merge at the same threshold."""
        if level <= self.tokenizer.levels:
            known = PAPER.get(self.size, ())
            return known[level - 1] if level <= len(known) else None
        merged = self.size == PAPER_SIZE and self.tokenizer.config().get("max_tokens") is None
        return MERGED[threshold][0] if merged and (threshold := self.tokenizer.merge_threshold) in MERGED else None


class Counts(Protocol):
    """The regions of every level over the central squares of images.

    Args:
        sizes: sides that the squares are resized to.
        interpolation: "bicubic" or "bilinear". The paper does not say which it used.
    """

    cases: Sequence[CountCase]

    title = "Regions at each level"
    notes: ClassVar[str] = """\
Means over the images' central squares with a normal 95 % interval. The paper's are over the training images of \
ImageNet. With a final merge, or a bound on the count, there are levels after the last; the paper's merges are over \
the validation images at 384²."""

    def __init__(self, data: Path, samples: Sequence[Sample], sizes: Sequence[int] = tuple(PAPER),
                 tokenizer: NestedTokenizer = SuperpixelTokenizer(),  # noqa: B008
                 device: torch.device | str = "cpu", interpolation: Interpolation = "bicubic") -> None:
        super().__init__(data, samples, [CountCase(tokenizer, size, torch.device(device), interpolation)
                                         for size in sorted(set(sizes))])

    def about(self) -> dict[str, Any]:
        first = self.cases[0]
        return {"device": str(first.device), "tokenizer": first.tokenizer.config(),
                "interpolation": first.interpolation}

    def rows(self, runner: Runner) -> list[Row]:
        rows: list[Row] = []
        for case in self.cases:
            levels = zip(*(record["counts"] for record in runner.answers(case, self.samples)), strict=True)
            rows += [Row(case.size, level, mean(values), case.paper(level))
                     for level, values in enumerate(levels, start=1)]
        return rows

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
        cells = [[f"{row.size}²", str(row.level), f"{row.regions.value:.1f} ({row.regions.low:.1f} to "
                  f"{row.regions.high:.1f})", "" if row.paper is None else f"{row.paper:.1f}",
                  "" if row.change is None else f"{row.change:+.1%}"] for row in rows]
        return [Sheet(["size", "level", "regions", "paper", "change"], cells)]


def square(path: Path, size: int, interpolation: Interpolation = "bicubic") -> Tensor:
    """The whole central square of an image, resized, ``(3, size, size)`` uint8."""
    _, height, width = (image := load_image(path)).shape
    short = min(height, width)
    top, left = (height - short) // 2, (width - short) // 2
    cut = image[:, top : top + short, left : left + short]
    picture = Image.fromarray(cut.movedim(0, -1).numpy()).resize((size, size), Image.Resampling[interpolation.upper()])
    return torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(size, size, 3).movedim(-1, 0)
