"""Faithfulness of attributions: comprehensiveness and sufficiency (§3.2, Table 2, App. D), and later protocols."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from spit.attribution import Lime, Method, MethodOptions, PrototypeProjection, occlude, rank_pixels
from spit.attribution.lime import check_lime, slic_regions
from spit.attribution.occlusion import paint_over
from spit.attribution.passes import image_generator
from spit.data.crops import central_square
from spit.evaluation.classification import SquareCase
from spit.evaluation.faithfulness_table import (
    QUANTILES,
    Faithfulness,
    Row,
    draw_curves,
    further_sheet,
    paper_sheet,
    summarize,
)
from spit.evaluation.imputation import impute
from spit.evaluation.intervals import scipy_stats
from spit.evaluation.masks import read_pair
from spit.evaluation.pointing import points_at, share_outside
from spit.evaluation.randomization import Part, randomized, rank_correlation
from spit.evaluation.report import Sheet
from spit.evaluation.runner import BATCHES, Protocol, Record, Runner
from spit.evaluation.saco import GROUPS, group_pixels, group_salience, saco
from spit.evaluation.samples import Sample
from spit.options import check_choice, option, same
from spit.predictor import Predictor
from spit.tokens import plural

CURVE = (0.1, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)  # further shares, for areas and smooth curves
ROAD_SHARES = (0.2, 0.4, 0.6, 0.8)
FEWEST = 5  # SLIC regions; App. D drops images that have fewer
OCCLUSION = "the image's mean colour"
MEASURES = ("comp", "auc", "road", "saco", "randomization", "pointing")

Variant = Callable[[], Tensor]  # makes a batch of changed images


@dataclass(frozen=True)
class Methods(MethodOptions):
    """Which attributions are compared, and by what."""

    method: tuple[str, ...] = same(MethodOptions, "method", ("relevance", "flow", "random"))
    measure: tuple[str, ...] = option(
        ("comp", "auc"), "comp: Comp and Suff, always measured. auc: insertion and deletion. road: ROAD. saco: SaCo. "
        "randomization: correlation with the maps of randomised models. pointing: pointing game and share outside the "
        "object, which needs masks. Repeat the option or separate names with commas", metavar="NAME")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.measures:
            check_choice("measure", name, MEASURES)
        if "lime" in self.names:
            check_lime()  # a missing package is reported before models are loaded

    @property
    def measures(self) -> tuple[str, ...]:
        """What is measured, each once."""
        return tuple(dict.fromkeys(name for names in self.measure for name in names.split(",")))

    def cases(self, predictors: Sequence[Predictor]) -> "list[FaithfulnessCase]":
        """Every model with every method."""
        shares = tuple(sorted({*QUANTILES, *(CURVE if "auc" in self.measures else ())}))
        further = tuple(name for name in MEASURES[2:] if name in self.measures)
        self.check_prototypes(predictors)
        return [FaithfulnessCase(one, method, shares, further)
                for one in predictors for method in self.methods_for(one)]

    def as_paper(self) -> "Methods":
        """The choices of Table 2, in the authors' reading; its three rows and the control if no methods were named.

        Raises:
            ValueError: an option has another value already.
        """
        own = Methods()
        if (self.lime_p, self.lime_remove, self.flow_skip, self.prototype_form) != (
                own.lime_p, own.lime_remove, own.flow_skip, own.prototype_form):
            raise ValueError("--as-paper sets the reading of LIME, the layers of flow and the form of prototypes; "
                             "leave out --lime-p, --lime-remove, --flow-skip and --prototype-form")
        named = ("lime", "flow", "prototype", "random") if self.method == own.method else self.method
        measured = ("comp",) if self.measure == own.measure else self.measure
        return self.replace(method=named, measure=measured, lime_p="keep", lime_remove="tokens", flow_skip=0,
                            prototype_form="paper")


@dataclass(frozen=True)
class FaithfulnessCase(SquareCase):
    """A model with a method, the shares of the pixels that are taken away, and the further measures."""

    method: Method
    shares: tuple[float, ...] = QUANTILES
    further: tuple[str, ...] = ()

    timed: ClassVar[bool] = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.predictor.name}, {self.method.name}"

    def config(self) -> dict[str, Any]:
        return {**super().config(), "method": self.method.name, "options": self.method.config(), "shares": self.shares,
                "further": self.further}

    def read(self, sample: Sample) -> Any:
        """The square, and with "pointing" below it the mask of the same square, ``(4, size, size)``."""
        if "pointing" not in self.further:
            return super().read(sample)
        image, truth = read_pair(sample)
        grey = torch.from_numpy(truth.foreground * np.uint8(255)).expand(3, -1, -1)
        squares = [central_square(one, self.predictor.size, self.predictor.model.config.eval_crop)
                   for one in (image, grey)]
        return torch.cat([squares[0], squares[1][:1]])

    def run(self, batch: Tensor, runner: Runner) -> list[Record]:
        """The probabilities of each image's predicted class, whole and changed, and the further figures.

        Changed images are tokenized again, as the model would see them.
        """
        images, masks = batch[:, :3], batch[:, 3] > 127 if batch.shape[1] == 4 else None
        prediction = self.predictor(images)
        whole, classes = prediction.probabilities.max(1)
        start = time.perf_counter()
        maps: Any = prediction.explain(self.method)  # squares of one size: a tensor
        if images.is_cuda:
            torch.cuda.synchronize(images.device)
        seconds = round((time.perf_counter() - start) / len(images), 6)
        ranks = rank_pixels(maps)
        ask = partial(self._ask, classes=classes, runner=runner)
        shares = [(1.0, False), *((share, keep) for keep in (False, True) for share in self.shares)]
        found = ask([partial(occlude, images, ranks, share, keep) for share, keep in shares])
        figures = {"seconds": torch.full_like(whole, seconds).double()}
        if "road" in self.further:
            figures["road"] = road(images, ranks, ask)
        if "saco" in self.further:
            groups = group_pixels(ranks)
            left = ask([partial(paint_over, images, groups == group) for group in range(GROUPS)])
            figures["saco"] = saco(group_salience(maps, groups), whole[:, None].double() - left)
        if "randomization" in self.further:
            for part in ("head", "model"):
                figures[f"random_{part}"] = rank_correlation(maps, self._random_maps(images, classes, part)).abs()
        if masks is not None:
            figures["pointing"], figures["outside"] = points_at(maps, masks), share_outside(maps, masks)
        columns = torch.cat([whole[:, None].double(), found], dim=1)  # (B, 2 + 2 · shares)
        rows = [[round(value, 7) for value in row] for row in columns.tolist()]
        middle = 2 + len(self.shares)
        records: list[Record] = [{
            "method": self.method.name, "class": label, "whole": row[0], "blank": row[1], "removed": row[2:middle],
            "kept": row[middle:], "figures": {name: round(float(values[index]), 7) for name, values in figures.items()}}
            for index, (label, row) in enumerate(zip(classes.tolist(), rows, strict=True))]
        if isinstance(self.method, Lime):
            for image, record in zip(images, records, strict=True):
                record["regions"] = int(slic_regions(image, self.method.regions).max()) + 1
        return records

    def _ask(self, variants: Sequence[Variant], classes: Tensor, runner: Runner) -> Tensor:
        """The probability of each image's class in each variant of the images, ``(B, variants)`` float64."""
        images = len(classes)
        together = max(1, (runner.batch or BATCHES[classes.is_cuda]) // images)  # variants that fill a batch
        found = []
        for start in range(0, len(variants), together):
            chosen = variants[start : start + together]
            with torch.no_grad():
                logits = self.predictor.model(torch.cat([make() for make in chosen]))
            found.append(logits.float().softmax(1).gather(1, classes.repeat(len(chosen))[:, None])[:, 0])
        return torch.cat(found).view(-1, images).T.double()

    def _random_maps(self, images: Tensor, classes: Tensor, part: Part) -> Any:
        """The maps of the same classes by a randomised model; prototypes are then those of the model as it was."""
        method = self.method
        if isinstance(method, PrototypeProjection):
            method = replace(method, prototypes=method.load(self.predictor))
        return randomized(self.predictor, part)(images).explain(method, classes)

    def records(self, found: list[Record], loaded: list[Tensor]) -> list[Record]:
        return found


def road(images: Tensor, ranks: Tensor, ask: Callable[[list[Variant]], Tensor]) -> Tensor:
    """ROAD, ``(B,)``: ½ the mean of Φ without the least minus Φ without the most important pixels, higher is better.

    Removed pixels are imputed from their neighbours (:func:`~spit.evaluation.imputation.impute`), at shares of .2, .4,
    .6 and .8. The difference of both orders divided by 2 is pytorch-grad-cam's ``ROADCombined``; the paper ranks
    methods by either order.
    """
    pixels = ranks[0].numel()
    noise = torch.stack([torch.randn(image.shape, generator=image_generator(image, 0)) for image in images])
    noise = noise.to(images.device)
    most = [ranks < round(share * pixels) for share in ROAD_SHARES]
    least = [ranks >= pixels - round(share * pixels) for share in ROAD_SHARES]
    answers = ask([partial(impute, images, missing, noise) for missing in (*most, *least)])
    without_most, without_least = answers.chunk(2, dim=1)
    return (without_least - without_most).mean(1) / 2


class FaithfulnessProtocol(Protocol):
    """Models, each with a method of attribution, on every image's central square; see :meth:`Methods.cases`."""

    cases: Sequence[FaithfulnessCase]

    title = "Faithfulness of attributions"
    plots = True
    notes: ClassVar[str] = """\
Comp and Suff: the drop in the probability of the predicted class, without the most important pixels and with nothing \
but them, mean over Q = .01, .05, .2, .5 of the pixels. Removed pixels get the image's mean colour, and the image is \
tokenized again. "±" is half the normal 95 % interval over the images. s/image: time of the explanation alone, after \
the pass."""
    notes_on: ClassVar[dict[str, str]] = {  # by what must be among the methods or the figures
        "lime": "Images with fewer than 5 SLIC regions are dropped for all methods, as in App. D.",
        "random": '"random" gives each token a random value.',
        "tests": "Tests are paired over images and one-sided: whether the method is better.",
        "paper": "The paper's figures are of its B16 models.",
        "insertion": "Insertion and deletion AUC: the area under the probability against the share of the pixels shown "
                     "or removed, at 11 shares and both ends.",
        "road": "ROAD: removed pixels are filled in from their neighbours; half of the difference between removing the "
                "least and the most important first.",
        "saco": "SaCo: whether the brighter tenth of the pixels causes the larger drop, from -1 to 1.",
        "pointing": "Pointing game: the share of the brightest token that lies on the object.",
        "random_head": "Random head, random model: |rank correlation| with the map of a model whose head, or all of "
                       "it, is shuffled.",
    }

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
            whole, blank, removed, kept = (torch.tensor([record[name] for record in records], dtype=torch.float64)
                                           for name in ("whole", "blank", "removed", "kept"))
            further = {name: [record["figures"][name] for record in records] for name in records[0]["figures"]}
            results.append(Faithfulness(case.predictor.name, case.predictor.model.config.tokenizer, case.method.name,
                                        case.shares, whole, blank, removed, kept, further))
        return summarize(results)

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
        return [paper_sheet(rows), further_sheet(rows)]

    def notes_for(self, rows: Sequence[Row]) -> str:
        shown = {name for row in rows for name in (row.method, *row.further)}
        shown |= {"tests"} if any(row.tests for row in rows) else set()
        shown |= {"paper"} if any(row.paper for row in rows) else set()
        return " ".join([self.notes, *(text for name, text in self.notes_on.items() if name in shown)])

    def pictures(self, rows: Sequence[Row]) -> dict[str, bytes]:
        return {"curves.png": draw_curves(rows, f"{plural(rows[0].images, 'image')} of {self.data.resolve().name}")}
