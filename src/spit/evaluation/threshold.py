"""Fewer tokens by a final merge (App. B, Table "Accuracy under final thresholding")."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from spit.evaluation.classification import SquareProtocol, classify
from spit.evaluation.intervals import Score, difference, proportion
from spit.evaluation.report import Sheet
from spit.evaluation.runner import Runner
from spit.evaluation.samples import LabelledFolder
from spit.options import Options, option
from spit.predictor import Predictor

PAPER = {  # tokens, images/s and accuracy of SPiT-B16 with gradients at 384²
    0.0: (556.5, 718.7, 0.804),
    0.05: (513.2, 749.2, 0.804),
    0.1: (441.6, 844.4, 0.802),
    0.15: (365.0, 950.5, 0.797),
    0.2: (293.7, 1038.9, 0.786),
}
PAPER_BEST = 0.817


@dataclass(frozen=True)
class Thresholds(Options):
    """Which thresholds to compare."""

    thresholds: tuple[float, ...] = option(tuple(PAPER), "Merge neighbours closer than this; may be repeated", least=0,
                                           flag="threshold", metavar="X")


@dataclass(frozen=True)
class Row:
    """One model with neighbours merged below one threshold, or None for the best of all.

    Attributes:
        change: of the accuracy against the first threshold, image by image.
        paper: tokens, images/s and accuracy in the paper.
    """

    model: str
    threshold: float | None
    tokens: float | None
    images_per_second: float | None
    top1: Score
    change: Score | None
    paper: tuple[float | None, float | None, float] | None


class Threshold(SquareProtocol):
    """Every model on superpixels, with neighbours merged below each threshold."""

    title = "Merge thresholds"
    notes: ClassVar[str] = """\
Top-1 accuracy with Wilson's 95 % interval; the change against the first threshold with a normal 95 % interval, paired \
image by image. Images/s is the model alone, by its median time. "Best of all" counts an image that is right at any \
threshold: a bound, not a method. The paper's are SPiT-B16 with gradients at 384², on other hardware."""

    def __init__(self, predictors: Sequence[Predictor], test: LabelledFolder,
                 options: Thresholds = Thresholds()) -> None:  # noqa: B008
        super().__init__(predictors, test)
        if not options.thresholds:
            raise ValueError("expected at least one threshold, got none")
        self.thresholds = sorted({float(value) for value in options.thresholds})

    @property
    def total(self) -> int:
        return len(self.predictors) * len(self.samples) * len(self.thresholds)

    def rows_of(self, predictor: Predictor, runner: Runner) -> list[Row]:
        results = [classify(runner, predictor.with_tokenizer("superpixel", merge_threshold=value), self.test)
                   for value in self.thresholds]
        marks = [result.right() for result in results]
        rows = [Row(predictor.name, value, result.tokens, result.images_per_second, proportion(right),
                    None if index == 0 else difference(right, marks[0]), PAPER.get(value))
                for index, (value, result, right) in enumerate(zip(self.thresholds, results, marks, strict=True))]
        if len(rows) > 1:
            best = [[max(tries) for tries in zip(*(right[0] for right in marks), strict=True)]]
            rows.append(Row(predictor.name, None, None, None, proportion(best), difference(best, marks[0]),
                            (None, None, PAPER_BEST) if self.thresholds == [*PAPER] else None))
        return rows

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
        headings = ["model", "threshold", "tokens", "images/s", "top-1", "change", "paper: tokens", "images/s",
                    "accuracy"]
        cells = []
        for row in rows:
            change, paper = row.change, row.paper or (None, None, None)
            cells.append([
                row.model, "best of all" if row.threshold is None else f"{row.threshold:g}", _one(row.tokens),
                _one(row.images_per_second), str(row.top1),
                "" if change is None else f"{change.value:+.4f} ({change.low:+.4f} to {change.high:+.4f})",
                _one(paper[0]), _one(paper[1]), "" if paper[2] is None else f"{paper[2]:.3f}"])
        return [Sheet(headings, cells)]


def _one(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
