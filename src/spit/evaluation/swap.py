"""Every tokenizer on every model (Table 4): how much of a model is its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from spit.evaluation.answers import RUNS, Examiner, Subject
from spit.evaluation.classification import Head, examine
from spit.evaluation.intervals import Score, difference, proportion
from spit.evaluation.labelled import LabelledFolder, class_indices
from spit.evaluation.sheets import Sheet

TOKENIZERS = ("patch", "voronoi", "superpixel")
PAPER = {  # Table 4, B16: the change of accuracy on ViT, RViT and SPiT tokens, by own tokenizer and gradients
    ("patch", False): (0.0, -0.551, -0.801),
    ("patch", True): (0.0, -0.494, -0.798),
    ("voronoi", False): (0.006, 0.0, -0.593),
    ("voronoi", True): (0.003, 0.0, -0.163),
    ("superpixel", False): (-0.407, -0.464, 0.0),
    ("superpixel", True): (-0.200, -0.063, 0.0),
}


@dataclass(frozen=True)
class Cell:
    """One model on one kind of tokens.

    Attributes:
        own: whether the model was trained on such tokens.
        top1: its accuracy.
        change: against its own tokens, image by image; None for its own.
        paper: the change of the paper's B16 model of this kind; None where it has none.
    """

    model: str
    gradients: bool
    tokenizer: str
    own: bool
    top1: Score
    change: Score | None
    paper: float | None
    tokens: float
    images_per_second: float


def evaluate(examiner: Examiner, subjects: Sequence[Subject], test: LabelledFolder) -> list[Cell]:
    """Every model on square patches, Voronoi cells (five runs) and superpixels.

    The model's own tokenizer keeps its options; the others have their defaults, about one token for every 256
    pixels. A model on a tokenizer of another kind has no tokens of its own here, and its change is against patches.

    Raises:
        ImageError: the folder's classes are not the model's, or an image is damaged.
    """
    for subject in subjects:
        class_indices(test, subject.model.config.num_classes, subject.model.config.class_names)
        examiner.expect(len(test.images) * (len(TOKENIZERS) - 1 + RUNS))
    return [cell for subject in subjects for cell in _row(examiner, subject, test)]


def _row(examiner: Examiner, subject: Subject, test: LabelledFolder) -> list[Cell]:
    config = subject.model.config
    results = {name: examine(examiner, subject.with_tokenizer(name), test, Head()) for name in TOKENIZERS}
    own = config.tokenizer if config.tokenizer in TOKENIZERS else TOKENIZERS[0]
    base = results[own].right()
    paper = PAPER.get((config.tokenizer, config.gradients), (None,) * len(TOKENIZERS))
    return [Cell(model=subject.name, gradients=config.gradients, tokenizer=name, own=name == config.tokenizer,
                 top1=proportion(result.right()), change=None if name == own else difference(result.right(), base),
                 paper=published, tokens=result.tokens, images_per_second=result.images_per_second)
            for (name, result), published in zip(results.items(), paper, strict=True)]


def sheet(cells: Sequence[Cell], about: str) -> Sheet:
    """One row for each model, as in the paper."""
    rows: dict[str, list[str]] = {}
    for cell in cells:
        row = rows.setdefault(cell.model, [cell.model, "yes" if cell.gradients else "no"])
        spread = "" if cell.top1.spread is None else f" ± {cell.top1.spread:.4f}"
        change = "own" if cell.own else ""
        if cell.change is not None:
            half = (cell.change.high - cell.change.low) / 2
            change = f"{cell.change.value:+.3f} ∓ {half:.3f}"
            change += "" if cell.paper is None else f"; paper {cell.paper:+.3f}"
        row.append(f"{cell.top1.value:.4f}{spread} ({change})")
    return Sheet("Tokenizers swapped", ["model", "gradients", *TOKENIZERS], list(rows.values()), about, 2, NOTES)


NOTES = """\
Top-1 accuracy; "±" is the standard deviation over five runs with other Voronoi cells. In brackets the change against \
the model's own tokens, with half its 95 % interval (normal, paired image by image), and the paper's change (Table 4, \
B16 models at their full training) beside it."""
