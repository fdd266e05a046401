"""Faithfulness of attributions: comprehensiveness and sufficiency (§3.2, Table 2, App. D), insertion and deletion."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.attribution.lime import Lime, slic_regions
from spit.attribution.methods import Method
from spit.attribution.occlusion import occlude, rank_pixels
from spit.documents import Sheet
from spit.drawing.plots import files_of
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
from spit.evaluation.intervals import scipy_stats
from spit.evaluation.options import BATCHES, Methods
from spit.evaluation.runner import Protocol, Record, Runner, family_of
from spit.evaluation.samples import Sample
from spit.predictor import Predictor
from spit.wording import plural

CURVE = (0.1, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)  # further shares, for areas and smooth curves
FEWEST = 5  # SLIC regions; App. D drops images that have fewer
OCCLUSION = "the image's mean colour"

Variant = Callable[[], Tensor]  # makes a batch of changed images


def cases_of(methods: Methods, predictors: Sequence[Predictor]) -> "list[FaithfulnessCase]":
    """Every model with every method."""
    shares = tuple(sorted({*QUANTILES, *(CURVE if "auc" in methods.measures else ())}))
    methods.check_prototypes(predictors)
    return [FaithfulnessCase(predictor, method, shares)
            for predictor in predictors for method in methods.methods_for(predictor)]


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
        """The probabilities of each image's predicted class, whole and changed, and the seconds of its explanation.

        Changed images are tokenized again, as the model would see them.
        """
        prediction = self.predictor(batch, crop=False)
        whole, classes = prediction.probabilities.max(1)
        start = time.perf_counter()
        maps: Any = prediction.explain(self.method)  # squares of one size: a tensor
        if batch.is_cuda:
            torch.cuda.synchronize(batch.device)
        seconds = round((time.perf_counter() - start) / len(batch), 6)
        ranks = rank_pixels(maps)
        shares = [(1.0, False), *((share, keep) for keep in (False, True) for share in self.shares)]
        changed = self._ask([partial(occlude, batch, ranks, share, keep) for share, keep in shares], classes, runner)
        columns = torch.cat([whole[:, None].double(), changed], dim=1)  # (B, 2 + 2 · shares)
        rows = [[round(value, 7) for value in row] for row in columns.tolist()]
        middle = 2 + len(self.shares)
        records: list[Record] = [{
            "method": self.method.name, "class": label, "whole": row[0], "blank": row[1], "removed": row[2:middle],
            "kept": row[middle:], "explained": seconds} for label, row in zip(classes.tolist(), rows, strict=True)]
        if isinstance(self.method, Lime):
            for image, record in zip(batch, records, strict=True):
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

    def records(self, found: list[Record], loaded: list[Tensor]) -> list[Record]:
        return found


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
            seconds = [record["explained"] for record in records]
            results.append(Faithfulness(case.predictor.name, family_of(case.predictor.model), case.method.name,
                                        case.shares, whole, blank, removed, kept, seconds))
        return summarize(results)

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
        return [paper_sheet(rows), further_sheet(rows)]

    def notes_for(self, rows: Sequence[Row]) -> str:
        shown = {name for row in rows for name in (row.method, *row.further)}
        shown |= {"tests"} if any(row.tests for row in rows) else set()
        shown |= {"paper"} if any(row.paper for row in rows) else set()
        return " ".join([self.notes, *(text for name, text in self.notes_on.items() if name in shown)])

    def pictures(self, rows: Sequence[Row]) -> dict[str, bytes]:
        figure = draw_curves(rows, f"{plural(rows[0].images, 'image')} of {self.data.resolve().name}")
        return files_of(figure, "curves")
