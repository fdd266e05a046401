"""Fewer tokens by a final merge (App. B, Table "Accuracy under final thresholding")."""

from collections.abc import Sequence
from dataclasses import dataclass

from spit.evaluation.answers import Examiner, Subject
from spit.evaluation.classification import Head, examine
from spit.evaluation.intervals import Score, difference, proportion
from spit.evaluation.labelled import LabelledFolder, class_indices
from spit.evaluation.sheets import Sheet

PAPER = {  # tokens, images/s and accuracy of SPiT-B16 with gradients at 384²
    0.0: (556.5, 718.7, 0.804),
    0.05: (513.2, 749.2, 0.804),
    0.1: (441.6, 844.4, 0.802),
    0.15: (365.0, 950.5, 0.797),
    0.2: (293.7, 1038.9, 0.786),
}
PAPER_BEST = 0.817
BEST = "best of all"


@dataclass(frozen=True)
class Row:
    """One model with its neighbours merged below one threshold.

    Attributes:
        threshold: None for the best of all: an image counts as right where any threshold has it right.
        change: of the accuracy against the first threshold, image by image.
        paper: tokens, images/s and accuracy that the paper has.
    """

    model: str
    threshold: float | None
    tokens: float | None
    images_per_second: float | None
    top1: Score
    change: Score | None
    paper: tuple[float | None, float | None, float] | None


def evaluate(examiner: Examiner, subjects: Sequence[Subject], test: LabelledFolder,
             thresholds: Sequence[float] = tuple(PAPER)) -> list[Row]:
    """Every model on superpixels, their neighbours joined below each threshold.

    Raises:
        ImageError: the folder's classes are not the model's, or an image is damaged.
        ValueError: no threshold, or a negative one.
    """
    if not thresholds:
        raise ValueError("expected a threshold at least, got none")
    variants = [[subject.with_tokenizer("superpixel", merge_threshold=float(threshold)) for threshold in thresholds]
                for subject in subjects]
    for subject in subjects:
        class_indices(test, subject.model.config.num_classes, subject.model.config.class_names)
        examiner.expect(len(test.images) * len(thresholds))
    return [row for subjects_ in variants for row in _rows(examiner, subjects_, test, thresholds)]


def _rows(examiner: Examiner, variants: Sequence[Subject], test: LabelledFolder,
          thresholds: Sequence[float]) -> list[Row]:
    results = [examine(examiner, variant, test, Head()) for variant in variants]
    marks = [result.right() for result in results]
    rows = [Row(variants[0].name, threshold, result.tokens, result.images_per_second, proportion(right),
                None if index == 0 else difference(right, marks[0]), PAPER.get(threshold))
            for index, (threshold, result, right) in enumerate(zip(thresholds, results, marks, strict=True))]
    if len(rows) > 1:
        best = [[max(tries) for tries in zip(*(right[0] for right in marks), strict=True)]]
        rows.append(Row(variants[0].name, None, None, None, proportion(best), difference(best, marks[0]),
                        (None, None, PAPER_BEST) if tuple(thresholds) == tuple(PAPER) else None))
    return rows


def sheet(rows: Sequence[Row], about: str) -> Sheet:
    """The rows as a table, the paper's figures beside ours."""
    cells = []
    for row in rows:
        change = row.change
        paper = row.paper or (None, None, None)
        cells.append([
            row.model, BEST if row.threshold is None else f"{row.threshold:g}",
            *("" if value is None else f"{value:.1f}" for value in (row.tokens, row.images_per_second)), str(row.top1),
            "" if change is None else f"{change.value:+.4f} ({change.low:+.4f} to {change.high:+.4f})",
            *("" if value is None else f"{value:.1f}" for value in paper[:2]),
            "" if paper[2] is None else f"{paper[2]:.3f}"])
    return Sheet("Merge thresholds", ["model", "threshold", "tokens", "images/s", "top-1", "change", "paper: tokens",
                                      "images/s", "accuracy"], cells, about, 1, NOTES)


NOTES = """\
Top-1 accuracy with Wilson's 95 % interval; the change against the first threshold with a normal 95 % interval, paired \
image by image. Images/s is the model alone, by its median time. "Best of all" counts an image where any threshold has \
it right: a bound, not a method. The paper's are SPiT-B16 with gradients at 384², on other hardware."""
