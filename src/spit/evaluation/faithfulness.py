"""Comprehensiveness and sufficiency of attributions (§3.2, Table 2, App. D)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.attribution import Lime, Method, MethodOptions, occlude, rank_pixels
from spit.attribution.lime import check_lime, slic_regions
from spit.evaluation.classification import SquareCase
from spit.evaluation.intervals import Score, TTest, mean, paired_ttest, scipy_stats
from spit.evaluation.report import Sheet, new_figure, png_of, tidy
from spit.evaluation.runner import BATCHES, Protocol, Record, Runner
from spit.evaluation.samples import Sample
from spit.options import option, same
from spit.predictor import Predictor
from spit.tokens import plural

QUANTILES = (0.01, 0.05, 0.2, 0.5)  # Q of App. D
CURVE = (0.1, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)  # further shares, for smooth curves
BASES = ("lime", "random")  # what methods are tested against
FEWEST = 5  # SLIC regions; App. D drops images that have fewer
OCCLUSION = "the image's mean colour"
COLORS = {"flow": "#1b7837", "rollout": "#5aae61", "prototype": "#762a83", "lime": "#e08214", "relevance": "#4e79a7",
          "random": "#8c8c8c"}
PAPER = {  # Table 2, B16 models: comprehensiveness and sufficiency
    ("patch", "lime"): (0.244, 0.543), ("patch", "flow"): (0.160, 0.664), ("patch", "prototype"): (0.206, 0.710),
    ("voronoi", "lime"): (0.236, 0.591), ("voronoi", "flow"): (0.223, 0.685), ("voronoi", "prototype"): (0.209, 0.691),
    ("superpixel", "lime"): (0.244, 0.520), ("superpixel", "flow"): (0.259, 0.558),
    ("superpixel", "prototype"): (0.256, 0.592),
}


@dataclass(frozen=True)
class Methods(MethodOptions):
    """Which attributions are compared, and at how many shares of the pixels."""

    method: tuple[str, ...] = same(MethodOptions, "method", ("flow", "rollout", "random"))
    curves: bool = option(False, "Measure 11 shares of the pixels instead of 4")

    def __post_init__(self) -> None:
        super().__post_init__()
        if "lime" in self.names:
            check_lime()  # a missing package is reported before models are loaded

    def cases(self, predictors: Sequence[Predictor]) -> "list[FaithfulnessCase]":
        """Every model with every method."""
        shares = tuple(sorted({*QUANTILES, *(CURVE if self.curves else ())}))
        self.check_prototypes(predictors)
        return [FaithfulnessCase(one, method, shares) for one in predictors for method in self.methods_for(one)]

    def as_paper(self) -> "Methods":
        """The choices of Table 2, in the authors' reading; its three rows and the control if no methods were named.

        Raises:
            ValueError: an option has another value already.
        """
        own = Methods()
        if (self.lime_p, self.lime_remove, self.prototype_form) != (own.lime_p, own.lime_remove, own.prototype_form):
            raise ValueError("--as-paper sets the reading of LIME and the form of prototypes; leave out --lime-p, "
                             "--lime-remove and --prototype-form")
        named = ("lime", "flow", "prototype", "random") if self.method == own.method else self.method
        return self.replace(method=named, lime_p="keep", lime_remove="tokens", prototype_form="paper")


@dataclass(frozen=True)
class FaithfulnessCase(SquareCase):
    """A model with a method, and the shares of the pixels that are taken away."""

    method: Method
    shares: tuple[float, ...] = QUANTILES

    timed: ClassVar[bool] = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.predictor.name}, {self.method.name}"

    def config(self) -> dict[str, Any]:
        return {**super().config(), "method": self.method.name, "options": self.method.config(), "shares": self.shares}

    def run(self, batch: Tensor, runner: Runner) -> list[Record]:
        """The probabilities of each image's predicted class, whole and occluded.

        Occluded images are tokenized again, as the model would see them.
        """
        prediction = self.predictor(batch)
        whole, classes = prediction.probabilities.max(1)
        maps: Any = prediction.explain(self.method)  # squares of one size: a tensor
        ranks = rank_pixels(maps)
        variants = [(1.0, False), *((share, keep) for keep in (False, True) for share in self.shares)]
        together = max(1, (runner.batch or BATCHES[batch.is_cuda]) // len(batch))  # variants that fill a batch
        found = [whole]
        for start in range(0, len(variants), together):
            chosen = variants[start : start + together]
            occluded = torch.cat([occlude(batch, ranks, share, keep) for share, keep in chosen])
            with torch.no_grad():
                logits = self.predictor.model(occluded)
            found.append(logits.float().softmax(1).gather(1, classes.repeat(len(chosen))[:, None])[:, 0])
        columns = torch.cat(found).view(-1, len(batch)).T.double()  # (B, 2 + 2 · shares)
        rows = [[round(value, 7) for value in row] for row in columns.tolist()]
        middle = 2 + len(self.shares)
        records: list[Record] = [{"method": self.method.name, "class": label, "whole": row[0], "blank": row[1],
                                  "removed": row[2:middle], "kept": row[middle:]}
                                 for label, row in zip(classes.tolist(), rows, strict=True)]
        if isinstance(self.method, Lime):
            for image, record in zip(batch, records, strict=True):
                record["regions"] = int(slic_regions(image, self.method.regions).max()) + 1
        return records

    def records(self, found: list[Record], loaded: list[Tensor]) -> list[Record]:
        return found


@dataclass(frozen=True)
class Faithfulness:
    """One method on one model, image by image.

    Attributes:
        shares: of the pixels, the most important ones, in rising order; Q are among them.
        whole, blank: probability of the predicted class of each image, and with all pixels taken away, ``(n,)``.
        removed, kept: for each image and share, without the most important pixels, and with nothing but them,
            ``(n, shares)``.
    """

    model: str
    tokenizer: str
    method: str
    shares: tuple[float, ...]
    whole: Tensor
    blank: Tensor
    removed: Tensor
    kept: Tensor

    def comprehensiveness(self) -> list[float]:
        """``1/|Q| Σ_q (Φ(x) − Φ(x ∖ x_{>q}))`` of each image; higher is better."""
        return self._drop(self.removed)

    def sufficiency(self) -> list[float]:
        """``1/|Q| Σ_q (Φ(x) − Φ(x ∖ x_{≤q}))`` of each image; lower is better."""
        return self._drop(self.kept)

    def deletion(self) -> list[float]:
        """The mean probability that is left without 0, each of ``shares``, and all of the pixels."""
        return _means(self.whole, self.removed, self.blank)

    def insertion(self) -> list[float]:
        """The mean probability with 0, each of ``shares``, and all of the pixels shown."""
        return _means(self.blank, self.kept, self.whole)

    def _drop(self, probabilities: Tensor) -> list[float]:
        columns = [self.shares.index(quantile) for quantile in QUANTILES]
        drops: list[float] = (self.whole - probabilities[:, columns].mean(1)).tolist()
        return drops


@dataclass(frozen=True)
class Row:
    """One method on one model.

    Attributes:
        paper: comprehensiveness and sufficiency in the paper, of a B16 model on such tokens; None if it has none.
        tests: by "comprehensiveness > lime" and so on, whether this method is better on the same images.
        deletion, insertion: mean probability at each of ``shares``.
    """

    model: str
    tokenizer: str
    method: str
    images: int
    comprehensiveness: Score
    sufficiency: Score
    paper: tuple[float, float] | None
    tests: dict[str, TTest | None]
    shares: list[float]
    deletion: list[float]
    insertion: list[float]


class FaithfulnessProtocol(Protocol):
    """Models, each with a method of attribution, on every image's central square; see :meth:`Methods.cases`."""

    cases: Sequence[FaithfulnessCase]

    title = "Faithfulness of attributions"
    plots = True
    notes: ClassVar[str] = """\
The drop in the probability of the predicted class, mean over Q = .01, .05, .2, .5 of the pixels: Comp without the \
most important ones, Suff with nothing but them. What is taken away becomes the image's mean colour, and the image is \
tokenized again. "±" is half the normal 95 % interval over the images. Tests are paired over images and one-sided: \
Comp more, Suff less. "random" gives each token a random value. Where LIME is measured, images with fewer than 5 SLIC \
regions are dropped for all methods, as in App. D. The paper's figures are of its B16 models."""

    def __init__(self, data: Path, samples: Sequence[Sample], cases: Sequence[FaithfulnessCase]) -> None:
        super().__init__(data, samples, cases)
        self.dropped: list[str] = []  # names of images with too few regions, known after the rows
        scipy_stats()  # a missing package is reported before the work
        for case in cases:
            case.predictor.expect_classes()

    def settings(self, runner: Runner) -> dict[str, Any]:
        return {"size": self.cases[0].predictor.size, "precision": runner.precision, "occlusion": OCCLUSION,
                "dropped": len(self.dropped)}

    def about(self) -> dict[str, Any]:
        return {"device": str(self.cases[0].predictor.device), "quantiles": list(QUANTILES),
                "dropped_images": self.dropped,
                "options": [{"model": case.predictor.name, "method": case.method.name, **case.method.config()}
                            for case in self.cases], "interval": "normal, 95 %"}

    def rows(self, runner: Runner) -> list[Row]:
        answers = [runner.answers(case, self.samples) for case in self.cases]
        used = [all(record.get("regions", FEWEST) >= FEWEST for record in records)
                for records in zip(*answers, strict=True)]
        self.dropped = [sample.name for sample, kept in zip(self.samples, used, strict=True) if not kept]
        if not any(used):
            raise ValueError(f"{self.data}: expected images in which SLIC finds {FEWEST} regions, got none; measure "
                             "without lime")
        results = []
        for case, found in zip(self.cases, answers, strict=True):
            records = list(compress(found, used))
            columns = [torch.tensor([record[name] for record in records], dtype=torch.float64)
                       for name in ("whole", "blank", "removed", "kept")]
            results.append(Faithfulness(case.predictor.name, case.predictor.model.config.tokenizer, case.method.name,
                                        case.shares, *columns))
        return summarize(results)

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
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
        return [Sheet(["attribution", *headings], cells)]

    def pictures(self, rows: Sequence[Row]) -> dict[str, bytes]:
        return {"curves.png": draw_curves(rows, f"{plural(rows[0].images, 'image')} of {self.data.resolve().name}")}


def summarize(results: Sequence[Faithfulness]) -> list[Row]:
    """Means, intervals, and tests against LIME and the control if they are among the results."""
    rows = []
    for own in results:
        comprehensive, sufficient = own.comprehensiveness(), own.sufficiency()
        tests = {}
        for base in results:
            if base.model == own.model and base.method in BASES and base.method != own.method:
                tests[f"comprehensiveness > {base.method}"] = paired_ttest(comprehensive, base.comprehensiveness())
                tests[f"sufficiency < {base.method}"] = paired_ttest(base.sufficiency(), sufficient)
        rows.append(Row(own.model, own.tokenizer, own.method, len(own.whole), mean(comprehensive), mean(sufficient),
                        PAPER.get((own.tokenizer, own.method)), tests, [0.0, *own.shares, 1.0], own.deletion(),
                        own.insertion()))
    return rows


def draw_curves(rows: Sequence[Row], title: str) -> bytes:
    """Deletion and insertion curves of each model, as a PNG."""
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
    return png_of(figure)


def _figures(row: Row | None) -> list[str]:
    if row is None:
        return ["", ""]
    paper = ["", ""] if row.paper is None else [f"; paper {value:.3f}" for value in row.paper]
    return [f"{score.value:.3f} ± {(score.high - score.low) / 2:.3f}{published}"
            for score, published in zip((row.comprehensiveness, row.sufficiency), paper, strict=True)]


def _means(first: Tensor, middle: Tensor, last: Tensor) -> list[float]:
    return [fmean(column) for column in torch.cat([first[:, None], middle, last[:, None]], dim=1).T.tolist()]

