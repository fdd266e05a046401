"""Models on other tokenizers than their own (§3.3, Table 4): how much of a model is its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from spit.documents import Sheet
from spit.drawing.plots import files_of, new_figure, tidy
from spit.evaluation.classification import SquareProtocol, classify
from spit.evaluation.intervals import Score, difference, proportion
from spit.evaluation.runner import Runner, family_of
from spit.evaluation.tokenizers import Variant
from spit.predictor import Predictor
from spit.wording import plural

TOKENIZERS = ("patch", "voronoi", "superpixel")


@dataclass(frozen=True)
class Row:
    """One model on one tokenizer; ``own`` if it is the model's.

    Attributes:
        change: of the accuracy against the model's own tokenizer, or the first; None for that one.
    """

    model: str
    tokenizer: str
    own: bool
    runs: int
    images: int
    top1: Score
    change: Score | None
    tokens: float
    images_per_second: float


class Swap(SquareProtocol):
    """Every model on every tokenizer, compared image by image.

    Without ``tokenizers`` these are square patches, Voronoi cells (five runs) and superpixels, the model's own in the
    place of its family, or before them if it has none. The model's own keeps its options; the others have their
    defaults, about one token for every 256 pixels.
    """

    title = "Tokenizers swapped"
    plots = True
    notes: ClassVar[str] = """\
Top-1 accuracy with Wilson's 95 % interval over the images. The change is against the model's own tokenizer, or the \
first if that is not among them, with a normal 95 % interval, paired image by image. Images/s is the model alone, by \
its median time."""

    def default(self, predictor: Predictor) -> Sequence[str]:
        own, family = predictor.model.config.tokenizer, family_of(predictor.model)
        names = [own if name == family else name for name in TOKENIZERS]
        return names if own in names else [own, *names]

    def rows_of(self, variants: Sequence[Variant], runner: Runner) -> list[Row]:
        results = [classify(runner, one.runs, self.test) for one in variants]
        marks = [result.right() for result in results]
        base = next((index for index, one in enumerate(variants) if one.own), 0)
        return [Row(
            model=one.runs[0].name, tokenizer=one.tokenizer, own=one.own, runs=len(right), images=len(result.truth),
            top1=proportion(right), change=None if index == base else difference(right, marks[base]),
            tokens=result.tokens, images_per_second=result.images_per_second)
            for index, (one, result, right) in enumerate(zip(variants, results, marks, strict=True))]

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
        cells = [[row.model, row.tokenizer, str(row.top1), row.change.signed() if row.change else
                  "own" if row.own else "first", f"{row.tokens:.1f}", f"{row.images_per_second:.1f}"] for row in rows]
        return [Sheet(["model", "tokenizer", "top-1", "change", "tokens", "images/s"], cells, words=2)]

    def pictures(self, rows: Sequence[Row]) -> dict[str, bytes]:
        return files_of(draw_accuracy(rows, f"{plural(rows[0].images, 'image')} of {self.data.resolve().name}"), "swap")


def draw_accuracy(rows: Sequence[Row], title: str) -> Any:
    """A figure of each model's accuracy by tokenizer, with its interval."""
    models, names = ([*dict.fromkeys(values)] for values in ((row.model for row in rows),
                                                             (row.tokenizer for row in rows)))
    figure = new_figure(2.5 + 1.4 * len(names), 4.5, title)
    axes = figure.subplots()
    for index, model in enumerate(models):
        own = [row for row in rows if row.model == model]
        shift = 0.5 * (index + 0.5) / len(models) - 0.25  # so that intervals do not hide each other
        scores = [row.top1 for row in own]
        errors = [[max(one.value - one.low, 0.0) for one in scores], [max(one.high - one.value, 0.0) for one in scores]]
        axes.errorbar([names.index(row.tokenizer) + shift for row in own], [one.value for one in scores], errors,
                      fmt="o", capsize=4, label=model)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks(range(len(names)), [name.replace(",", "\n") for name in names])
    axes.set_ylabel("top-1 accuracy, 95 % interval")
    tidy(axes)
    figure.legend(loc="outside lower center", frameon=False)
    return figure
