"""Fewer tokens by a final merge (App. B, Table "Accuracy under final thresholding")."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from torch import Tensor

from spit.documents import Sheet
from spit.evaluation.classification import AnswerCase, SquareProtocol, classify
from spit.evaluation.intervals import Score, difference, proportion
from spit.evaluation.runner import Runner
from spit.evaluation.samples import LabelledFolder, spread
from spit.evaluation.tokenizers import Variant
from spit.predictor import Predictor
from spit.tokenizers import NestedTokenizer

PAPER = {  # tokens, images/s and accuracy of SPiT-B16 with gradients at 384²
    0.0: (556.5, 718.7, 0.804),
    0.05: (513.2, 749.2, 0.804),
    0.1: (441.6, 844.4, 0.802),
    0.15: (365.0, 950.5, 0.797),
    0.2: (293.7, 1038.9, 0.786),
}
PAPER_BEST = 0.817
PAPER_SIZE = 384
SEARCHED = 50  # images by which thresholds of equal shares are found
HALVINGS = 12


@dataclass(frozen=True)
class Row:
    """One model with neighbours merged below one threshold, or None for the best of all.

    Attributes:
        share: of the tokens of the first threshold.
        change: of the accuracy against the first threshold, image by image.
        paper: tokens, images/s and accuracy in the paper.
    """

    model: str
    threshold: float | None
    tokens: float | None
    share: float | None
    images_per_second: float | None
    top1: Score
    change: Score | None
    paper: tuple[float | None, float | None, float]


class Threshold(SquareProtocol):
    """Every model on superpixels, with neighbours merged below each of the paper's thresholds.

    Args:
        equal_shares: use the thresholds that leave the same shares of tokens as the paper's do. Features differ, so
            equal thresholds compare unlike merges.
    """

    title = "Merge thresholds"
    notes: ClassVar[str] = """\
Top-1 accuracy with Wilson's 95 % interval; the change against the first threshold with a normal 95 % interval, paired \
image by image. Images/s is the model alone, by its median time. "Best of all" counts an image that is right at any \
threshold: a bound, not a method. The paper's are SPiT-B16 with gradients at 384², on other hardware. With \
--equal-shares the thresholds are those that leave the paper's shares of tokens, found on at most 50 of the images."""

    def __init__(self, predictors: Sequence[Predictor], test: LabelledFolder, equal_shares: bool = False) -> None:
        super().__init__(predictors, test)
        self.thresholds, self.equal_shares = sorted(PAPER), equal_shares

    @property
    def total(self) -> int:
        return len(self.predictors) * len(self.samples) * len(self.thresholds)

    def settings(self, runner: Runner) -> dict[str, Any]:
        return {**super().settings(runner), "equal_shares": self.equal_shares}

    def default(self, predictor: Predictor) -> Sequence[str]:
        nested = isinstance(predictor.model.tokenizer, NestedTokenizer)
        return [predictor.model.config.tokenizer if nested else "superpixel"]

    def rows_of(self, variants: Sequence[Variant], runner: Runner) -> list[Row]:
        [predictor] = variants[0].runs
        values = self._equal(predictor, runner) if self.equal_shares else self.thresholds
        results = [classify(runner, [_merged(predictor, value)], self.test) for value in values]
        marks = [result.right() for result in results]
        rows = [Row(predictor.name, value, result.tokens, result.tokens / results[0].tokens, result.images_per_second,
                    proportion(right), None if index == 0 else difference(right, marks[0]),
                    PAPER[self.thresholds[index]])
                for index, (value, result, right) in enumerate(zip(values, results, marks, strict=True))]
        best = [[max(tries) for tries in zip(*(right[0] for right in marks), strict=True)]]
        return [*rows, Row(predictor.name, None, None, None, None, proportion(best), difference(best, marks[0]),
                           (None, None, PAPER_BEST))]

    def _equal(self, predictor: Predictor, runner: Runner) -> list[float]:
        runner.say(f"{predictor.name}: finding thresholds")
        case = AnswerCase(_merged(predictor, 0.0))
        images = case.prepare([case.read(sample) for sample in spread(self.samples, SEARCHED)])
        tokenizer = cast(NestedTokenizer, case.predictor.model.tokenizer)
        return [threshold_of_share(tokenizer, images, paper_share(value)) for value in self.thresholds]

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
        headings = ["model", "threshold", "tokens", "share", "images/s", "top-1", "change", "paper: tokens", "share",
                    "images/s", "accuracy"]
        cells = []
        for row in rows:
            change, paper = row.change, row.paper
            cells.append([
                row.model, "best of all" if row.threshold is None else f"{row.threshold:.3g}", _one(row.tokens),
                _percent(row.share), _one(row.images_per_second), str(row.top1),
                "" if change is None else change.signed(),
                _one(paper[0]), _percent(None if paper[0] is None else paper[0] / PAPER[0.0][0]), _one(paper[1]),
                f"{paper[2]:.3f}"])
        return [Sheet(headings, cells)]


def paper_share(threshold: float) -> float:
    """The share of tokens that the paper's merge at a threshold leaves."""
    return PAPER[threshold][0] / PAPER[0.0][0]


def threshold_of_share(tokenizer: NestedTokenizer, images: Tensor, share: float) -> float:
    """The merge threshold that leaves about this share of the regions of images ``(B, 3, H, W)``, by bisection."""
    if share >= 1:
        return 0.0

    def regions(threshold: float) -> int:
        tried = tokenizer.replace(merge_threshold=threshold)
        return sum(int(tried(batch).counts.sum()) for batch in images.split(16))

    wanted, low, high = share * regions(0.0), 0.0, 2.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if regions(middle) > wanted else (low, middle)
    return high


def _merged(predictor: Predictor, merge_threshold: float) -> Predictor:
    """A predictor on superpixels with a merge threshold."""
    return predictor.with_tokenizer(predictor.model.config.tokenizer, merge_threshold=merge_threshold)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _one(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
