"""The count law (App. B): how many superpixels at each level."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from spit import __version__
from spit.data.images import load_image
from spit.evaluation.intervals import Score, mean
from spit.evaluation.lines import Lines, case_of
from spit.evaluation.sheets import Sheet
from spit.tokenizers import SuperpixelTokenizer

PAPER = {  # Table "empirical_spsizes": means over the training images of ImageNet at levels 1 to 4
    224: (11940.278, 3155.512, 794.650, 197.411),
    256: (15496.020, 4097.510, 1031.727, 256.051),
    384: (34084.297, 9047.289, 2287.822, 567.69),
}


@dataclass(frozen=True)
class Row:
    """One level at one size.

    Attributes:
        regions: the mean over the images, with a normal 95 % interval.
        paper: the paper's mean; None where it has none.
    """

    size: int
    level: int
    regions: Score
    paper: float | None

    @property
    def change(self) -> float | None:
        """How far from the paper's mean, as a share of it."""
        return None if self.paper is None else self.regions.value / self.paper - 1


def evaluate(images: Sequence[Path], sizes: Sequence[int] = tuple(PAPER),
             tokenizer: SuperpixelTokenizer = SuperpixelTokenizer(), batch: int = 16,  # noqa: B008
             device: torch.device | str = "cpu", journal: Path | None = None,
             progress: Callable[[str, int, int], None] = lambda *_: None) -> list[Row]:
    """Count the regions of every level over the central squares of images.

    Args:
        sizes: sides that the squares are resized to, bicubic.
        journal: a file of counts to add to, and to take up where an earlier run was stopped.
        progress: called with what is being done, images counted, and images in all.

    Raises:
        ImageError: an image is damaged.
    """
    rows: list[Row] = []
    done, total = 0, len(images) * len(sizes)
    with Lines(journal) as lines:
        for size in sizes:
            case = case_of(tokenizer=tokenizer.config(), size=size, spit=__version__)
            files = {str(path.resolve()): path for path in images}
            missing = [name for name in files if name not in lines.records(case)]
            done += len(files) - len(missing)
            progress(f"{size}²", done, total)
            for start in range(0, len(missing), batch):
                names = missing[start : start + batch]
                squares = torch.stack([square(files[name], size) for name in names]).to(device)
                counts = tokenizer.hierarchy(squares).counts[1:].T.tolist()  # (B, T)
                lines.add(case, [{"image": name, "size": size, "counts": levels}
                                 for name, levels in zip(names, counts, strict=True)])
                done += len(names)
                progress(f"{size}²", done, total)
            levels = zip(*(lines.records(case)[name]["counts"] for name in files), strict=True)
            published = PAPER.get(size, ())
            rows += [Row(size, level, mean(values), published[level - 1] if level <= len(published) else None)
                     for level, values in enumerate(levels, start=1)]
    return rows


def square(path: Path, size: int) -> Tensor:
    """The whole central square of an image, resized, ``(3, size, size)`` uint8."""
    _, height, width = (image := load_image(path)).shape
    short = min(height, width)
    top, left = (height - short) // 2, (width - short) // 2
    cut = image[:, top : top + short, left : left + short]
    picture = Image.fromarray(cut.movedim(0, -1).numpy()).resize((size, size), Image.Resampling.BICUBIC)
    return torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(size, size, 3).movedim(-1, 0)


def sheet(rows: Sequence[Row], about: str) -> Sheet:
    """The rows as a table, the paper's means beside ours."""
    cells = [[f"{row.size}²", str(row.level), f"{row.regions.value:.1f} ({row.regions.low:.1f} to "
              f"{row.regions.high:.1f})", "" if row.paper is None else f"{row.paper:.1f}",
              "" if row.change is None else f"{row.change:+.1%}"] for row in rows]
    return Sheet("Regions at each level", ["size", "level", "regions", "paper", "change"], cells, about, 1,
                 NOTES)


NOTES = """\
Means over the images' central squares with a normal 95 % interval. The paper's are over the training images of \
ImageNet. A final merge and a bound on the count, where asked for, are levels after the last."""
