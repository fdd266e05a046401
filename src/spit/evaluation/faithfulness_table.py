"""What attributions score, image by image, as rows, tests and curves (Table 2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from spit.documents import Sheet
from spit.drawing.plots import new_figure, tidy
from spit.evaluation.intervals import Score, TTest, mean, paired_ttest

QUANTILES = (0.01, 0.05, 0.2, 0.5)  # Q of App. D
BASES = ("lime", "random")  # what methods are tested against
COLORS = {"flow": "#1b7837", "rollout": "#5aae61", "prototype": "#762a83", "lime": "#e08214", "relevance": "#4e79a7",
          "token_rise": "#d6604d", "random": "#8c8c8c"}
PAPER = {  # Table 2, B16 models: comprehensiveness and sufficiency
    ("patch", "lime"): (0.244, 0.543), ("patch", "flow"): (0.160, 0.664), ("patch", "prototype"): (0.206, 0.710),
    ("voronoi", "lime"): (0.236, 0.591), ("voronoi", "flow"): (0.223, 0.685), ("voronoi", "prototype"): (0.209, 0.691),
    ("superpixel", "lime"): (0.244, 0.520), ("superpixel", "flow"): (0.259, 0.558),
    ("superpixel", "prototype"): (0.256, 0.592),
}


FIGURES = {  # by name: heading, and whether more is better
    "comprehensiveness": ("Comp ↑", True), "sufficiency": ("Suff ↓", False), "insertion": ("insertion AUC ↑", True),
    "deletion": ("deletion AUC ↓", False), "seconds": ("s/image", False),
}


@dataclass(frozen=True)
class Faithfulness:
    """One method on one model, image by image.

    Attributes:
        shares: of the pixels, the most important ones, in rising order; Q are among them.
        whole, blank: probability of the predicted class of each image, and with all pixels taken away, ``(n,)``.
        removed, kept: for each image and share, without the most important pixels, and with nothing but them,
            ``(n, shares)``.
        seconds: of each image's explanation.
    """

    model: str
    tokenizer: str
    method: str
    shares: tuple[float, ...]
    whole: Tensor
    blank: Tensor
    removed: Tensor
    kept: Tensor
    seconds: list[float]

    def comprehensiveness(self) -> list[float]:
        """``1/|Q| Σ_q (Φ(x) − Φ(x ∖ x_{>q}))`` of each image; higher is better."""
        return self._drop(self.removed)

    def sufficiency(self) -> list[float]:
        """``1/|Q| Σ_q (Φ(x) − Φ(x ∖ x_{≤q}))`` of each image; lower is better."""
        return self._drop(self.kept)

    def deletion(self) -> Tensor:
        """The probability that is left without 0, each of ``shares``, and all of the pixels, ``(n, shares + 2)``."""
        return torch.cat([self.whole[:, None], self.removed, self.blank[:, None]], dim=1)

    def insertion(self) -> Tensor:
        """The probability with 0, each of ``shares``, and all of the pixels shown, ``(n, shares + 2)``."""
        return torch.cat([self.blank[:, None], self.kept, self.whole[:, None]], dim=1)

    def figures(self) -> dict[str, list[float]]:
        """Everything that was measured, by name, a number for each image; AUC by the trapezoidal rule."""
        found = {"comprehensiveness": self.comprehensiveness(), "sufficiency": self.sufficiency()}
        if len(self.shares) > len(QUANTILES):
            places = torch.tensor([0.0, *self.shares, 1.0], dtype=torch.float64)
            found["insertion"] = torch.trapezoid(self.insertion(), places).tolist()
            found["deletion"] = torch.trapezoid(self.deletion(), places).tolist()
        return {**found, "seconds": self.seconds}

    def _drop(self, probabilities: Tensor) -> list[float]:
        columns = [self.shares.index(quantile) for quantile in QUANTILES]
        drops: list[float] = (self.whole - probabilities[:, columns].mean(1)).tolist()
        return drops


@dataclass(frozen=True)
class Row:
    """One method on one model.

    Attributes:
        paper: comprehensiveness and sufficiency in the paper, of a B16 model on such tokens; None if it has none.
        further: the other figures that were measured, by name.
        tests: by "comprehensiveness > lime" and so on, whether this method is better on the same images.
        deletion, insertion: mean probability at each of ``shares``.
    """

    model: str
    tokenizer: str
    method: str
    images: int
    comprehensiveness: Score
    sufficiency: Score
    further: dict[str, Score]
    paper: tuple[float, float] | None
    tests: dict[str, TTest | None]
    shares: list[float]
    deletion: list[float]
    insertion: list[float]


def summarize(results: Sequence[Faithfulness]) -> list[Row]:
    """Means, intervals, and tests against LIME and the control if they are among the results."""
    rows = []
    figures = [own.figures() for own in results]
    for own, found in zip(results, figures, strict=True):
        tests = {}
        for base, other in zip(results, figures, strict=True):
            if base.model == own.model and base.method in BASES and base.method != own.method:
                for name in found:
                    if name != "seconds":
                        more = FIGURES[name][1]
                        pair = (found[name], other[name]) if more else (other[name], found[name])
                        tests[f"{name} {'>' if more else '<'} {base.method}"] = paired_ttest(*pair)
        scores = {name: mean(values) for name, values in found.items()}
        rows.append(Row(own.model, own.tokenizer, own.method, len(own.whole), scores.pop("comprehensiveness"),
                        scores.pop("sufficiency"), scores, PAPER.get((own.tokenizer, own.method)), tests,
                        [0.0, *own.shares, 1.0], _means(own.deletion()), _means(own.insertion())))
    return rows


def paper_sheet(rows: Sequence[Row]) -> Sheet:
    """Table 2: a row for each method, two columns for each model, then a row for each test."""
    models, methods = [*dict.fromkeys(row.model for row in rows)], [*dict.fromkeys(row.method for row in rows)]
    found = {(row.model, row.method): row for row in rows}
    cells = [[method, *(text for model in models for text in _figures(found.get((model, method))))]
             for method in methods]
    for base in BASES:
        for method in methods:
            if base in methods and method != base and not (base == "lime" and method == "random"):
                names = (f"comprehensiveness > {base}", f"sufficiency < {base}")
                cells.append([f"{method} against {base}", *(
                    str((row.tests.get(name) if row is not None else None) or "")
                    for row in (found.get((model, method)) for model in models) for name in names)])
    headings = [f"{model} {metric}" for model in models for metric in ("Comp ↑", "Suff ↓")]
    return Sheet(["attribution", *headings], cells)


def further_sheet(rows: Sequence[Row]) -> Sheet:
    """The other figures: a row for each model and method, and one for each test against LIME."""
    names = [name for name in FIGURES if any(name in row.further for row in rows)]
    cells = []
    for row in rows:
        cells.append([row.model, row.method, *(_further(row, name) for name in names)])
        tests = [row.tests.get(f"{name} {'>' if FIGURES[name][1] else '<'} lime") for name in names]
        if any(tests) and row.method != "random":
            cells.append([row.model, f"{row.method} against lime", *(str(test or "") for test in tests)])
    return Sheet(["model", "attribution", *(FIGURES[name][0] for name in names)], cells, words=2,
                 title="Further figures")


def draw_curves(rows: Sequence[Row], title: str) -> Any:
    """A figure of the deletion and insertion curves of each model."""
    models = [*dict.fromkeys(row.model for row in rows)]
    figure = new_figure(1 + 4.5 * len(models), 7.5, title)
    panels = figure.subplots(2, len(models), sharex=True, sharey=True, squeeze=False)
    words = (("deletion", "lower", "removed"), ("insertion", "higher", "shown"))
    for column, model in enumerate(models):
        for axes, (kind, better, done) in zip(panels[:, column], words, strict=True):
            for row in rows:
                if row.model == model:
                    axes.plot(row.shares, getattr(row, kind), marker="o", markersize=3.5, label=row.method,
                              color=COLORS.get(row.method), linestyle="--" if row.method == "random" else "-")
            tidy(axes, f"{model}: {kind}, {better} is better")
            axes.set_xlabel(f"share of the pixels {done}, most important first")
    panels[0, 0].set_ylim(0, None)
    for axes in panels[:, 0]:
        axes.set_ylabel("probability of the predicted class")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    return figure


def _figures(row: Row | None) -> list[str]:
    if row is None:
        return ["", ""]
    paper = ["", ""] if row.paper is None else [f"; paper {value:.3f}" for value in row.paper]
    return [_text(score) + published
            for score, published in zip((row.comprehensiveness, row.sufficiency), paper, strict=True)]


def _further(row: Row, name: str) -> str:
    """One of the other figures; a time has no interval."""
    score = row.further[name]
    return f"{score.value:.3f}" if name == "seconds" else _text(score)


def _text(score: Score) -> str:
    return f"{score.value:.3f} ± {(score.high - score.low) / 2:.3f}"


def _means(curves: Tensor) -> list[float]:
    return [fmean(column) for column in curves.T.tolist()]
