"""Every tokenizer on every model (Table 4): how much of a model is its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from spit.documents import Sheet
from spit.evaluation.classification import SEEDS, SquareProtocol, classify
from spit.evaluation.intervals import Score, proportion
from spit.evaluation.runner import Runner, family_of
from spit.predictor import Predictor
from tables.runs import difference

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
class Row:
    """One model on one kind of tokens; ``own`` if it was trained on them.

    Attributes:
        change: of the accuracy against its own tokens, image by image; None for its own.
        paper: the change of the paper's B16 model of this kind; None if it has none.
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


class Swap(SquareProtocol):
    """Every model on square patches, Voronoi cells (five runs) and superpixels.

    The model's own tokenizer keeps its options; the others have their defaults, about one token for every 256 pixels.
    For a model on a tokenizer of another kind the change is against patches.
    """

    title = "Tokenizers swapped"
    notes: ClassVar[str] = """\
Top-1 accuracy; "±" is the standard deviation over five runs with other Voronoi cells. In brackets the change against \
the model's own tokens, with half its 95 % interval (normal, paired image by image), and the paper's change (Table 4, \
B16 models at their full training)."""

    @property
    def total(self) -> int:
        return len(self.predictors) * len(self.samples) * (len(TOKENIZERS) - 1 + SEEDS)

    def rows_of(self, predictor: Predictor, runner: Runner) -> list[Row]:
        config = predictor.model.config
        family = family_of(predictor.model)
        results = {name: classify(runner, predictor.with_tokenizer(config.tokenizer if name == family else name),
                                  self.test) for name in TOKENIZERS}
        own = family if family in TOKENIZERS else TOKENIZERS[0]
        base = results[own].right()
        paper = PAPER.get((family, config.gradients), (None,) * len(TOKENIZERS))
        return [Row(model=predictor.name, gradients=config.gradients, tokenizer=name, own=name == family,
                    top1=proportion(result.right()), change=None if name == own else difference(result.right(), base),
                    paper=published, tokens=result.tokens, images_per_second=result.images_per_second)
                for (name, result), published in zip(results.items(), paper, strict=True)]

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
        cells: dict[str, list[str]] = {}
        for row in rows:
            own = cells.setdefault(row.model, [row.model, "yes" if row.gradients else "no"])
            spread = "" if row.top1.spread is None else f" ± {row.top1.spread:.4f}"
            change = "own" if row.own else ""
            if row.change is not None:
                change = f"{row.change.value:+.3f} ± {(row.change.high - row.change.low) / 2:.3f}"
                change += "" if row.paper is None else f"; paper {row.paper:+.3f}"
            own.append(f"{row.top1.value:.4f}{spread} ({change})")
        return [Sheet(["model", "gradients", *TOKENIZERS], list(cells.values()), words=2)]
