"""Every tokenizer on every model, beside the paper's figures (Table 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from spit.documents import Sheet
from spit.evaluation import swap
from spit.evaluation.runner import Runner
from spit.evaluation.swap import TOKENIZERS
from spit.evaluation.tokenizers import Variant

PAPER = {  # Table 4, B16: the change of accuracy on ViT, RViT and SPiT tokens, by own tokenizer and gradients
    ("patch", False): (0.0, -0.551, -0.801),
    ("patch", True): (0.0, -0.494, -0.798),
    ("voronoi", False): (0.006, 0.0, -0.593),
    ("voronoi", True): (0.003, 0.0, -0.163),
    ("superpixel", False): (-0.407, -0.464, 0.0),
    ("superpixel", True): (-0.200, -0.063, 0.0),
}


@dataclass(frozen=True)
class Row(swap.Row):
    """One model on one kind of tokens; ``paper`` is the change of the paper's B16 model of this kind, if it has one."""

    gradients: bool
    paper: float | None


class Swap(swap.Swap):
    """``spit evaluate swap`` as Table 4 shows it: a row for each model and a column for each tokenizer."""

    notes: ClassVar[str] = """\
Top-1 accuracy. In brackets the change against the model's own tokens, with half its 95 % interval (normal, paired \
image by image), and the paper's change (Table 4, B16 models at their full training)."""

    def rows_of(self, variants: Sequence[Variant], runner: Runner) -> list[Row]:
        gradients = variants[0].runs[0].model.config.gradients
        own = next((name for name, one in zip(TOKENIZERS, variants, strict=True) if one.own), "")
        paper = PAPER.get((own, gradients), (None,) * len(TOKENIZERS))
        return [Row(**vars(row), gradients=gradients, paper=published)
                for row, published in zip(super().rows_of(variants, runner), paper, strict=True)]

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
