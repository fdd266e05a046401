"""Unsupervised saliency: TokenCut on tokens against human masks (§3.2, Table 3, App. E)."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spit.answers.segment import Segment
from spit.documents import Sheet
from spit.drawing import encode_png
from spit.evaluation.intervals import Score, share
from spit.evaluation.masks import (
    BETA2,
    OWN_BETA2,
    PAPER_BETA2,
    Truth,
    best_threshold,
    count_parts,
    draw_page,
    f_measure,
    read_pair,
    score,
)
from spit.evaluation.runner import ModelCase, Protocol, Record, Runner
from spit.evaluation.samples import Sample
from spit.forward_pass import each_alone
from spit.predictor import Predictor
from spit.segmentation.head import TokenHead, head_for
from spit.segmentation.saliency import Segmentation

TOKENCUT = tuple(Segment(method="cut", tau=0.2, cut_on=on, foreground="largest", clean=False, merge=False)
                 for on in ("keys", "tokens"))
"""The baseline: TokenCut's own τ and rule, on keys as in its code and on final tokens as in App. E."""


@dataclass(frozen=True)
class SaliencyCase(ModelCase):
    """A model with a way to cut its tokens."""

    question: Segment = field(default_factory=Segment)

    by_size: ClassVar[bool] = True  # images of one size are tokenized together
    batches: ClassVar[tuple[int, int]] = (32, 32)  # fewer on a CPU make threads wait for each other at the end of each

    def __post_init__(self) -> None:
        self.question.layer_of(self.predictor.model.config.depth)  # an unknown layer is refused before the work
        object.__setattr__(self, "predictor", self.question.joined(self.predictor))

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.predictor.name}, {self.question.cut_on}"

    @property
    def head(self) -> TokenHead | None:
        """The head that the question needs."""
        return head_for(self.predictor, self.question.method, self.question.token_head)

    @property
    def method(self) -> str:
        """What finds the foreground, also if that was left to the model."""
        return self.question.method or ("both" if self.head else "cut")

    @property
    def merged(self) -> bool:
        """Whether tokens join inside f."""
        return self.predictor.model.config.backbone == "merging"

    def config(self) -> dict[str, Any]:
        return {**super().config(), "question": self.question.to_dict(), "token_head": self.head and self.head.digest}

    def read(self, sample: Sample) -> tuple[Tensor, Truth]:
        return read_pair(sample)

    def prepare(self, loaded: list[tuple[Tensor, Truth]]) -> list[Tensor]:
        return [image.to(self.predictor.device) for image, _ in loaded]

    def run(self, batch: list[Tensor], runner: Runner | None = None) -> Segmentation:
        return self.question.ask(self.predictor, batch)

    def warm_up(self, batch: list[Tensor], runner: Runner) -> None:
        self.run(batch[:2], runner)  # two: each thread has one

    def records(self, found: Segmentation, loaded: list[tuple[Tensor, Truth]]) -> list[Record]:
        counts = found.partition.counts.tolist()

        def record(index: int) -> Record:
            truth, mask = loaded[index][1], found.mask[index].cpu().numpy()
            scores = score(found.saliency[index].cpu().numpy(), mask, truth)
            pieces, holes = count_parts(mask)
            best = f_measure(scores.positives, scores.hits, scores.foreground).max()
            curves = np.stack([scores.positives, scores.hits]).astype("<i4")
            return {"iou": round(scores.iou, 6), "accuracy": round(scores.accuracy, 6), "f": round(float(best), 6),
                    "foreground": scores.foreground, "tokens": counts[index], "pieces": pieces, "holes": holes,
                    "positives_and_hits": base64.b64encode(curves.tobytes()).decode()}

        return each_alone(record, range(len(loaded)))


@dataclass(frozen=True)
class Row:
    """One case's figures.

    Attributes:
        cut: options of the cut, the size that the model saw, and whether tokens joined inside f.
        images: how many were counted; ``empty`` more have a mask without any foreground and are in no figure.
        max_f: F at the best threshold of all images together, β² = 0.3, as TokenCut; ``threshold`` is that one.
        max_f_own: the mean of F at each image's own best threshold, β² = 0.09, as SelfMask and FOUND.
        max_f_paper: the same with β = 1/3, at its own best threshold.
        pieces, holes: 4-connected pieces of a mask, and pieces of its background that the border does not touch; means.
        seconds: median of an image's share of its batch, without reading.
        scores: IoU of every counted image by its name.
    """

    model: str
    tokenizer: str
    cut: dict[str, Any]
    images: int
    empty: int
    iou: Score
    accuracy: Score
    max_f: Score
    threshold: float
    max_f_own: Score
    max_f_paper: Score
    tokens: float
    pieces: float
    holes: float
    seconds: float
    scores: dict[str, float] = field(repr=False)


class Saliency(Protocol):
    """Every case, a model with a cut, over the samples of :func:`spit.evaluation.masks.find_samples`."""

    title = "Unsupervised saliency"
    notes: ClassVar[str] = """\
Masks from tokens, no pixel post-processing. IoU and accuracy of the mask at 0.5, averaged over the images; 95 % \
normal intervals over the images. Two figures are called max F in print: F at 255 thresholds for each image, averaged \
over the images, then the maximum (TokenCut, β² = 0.3; the paper writes β = 1/3); and each image's own maximum, then \
averaged (SelfMask and FOUND, whose code squares 0.3 again: β² = 0.09), which is mostly higher. Pieces and holes: \
4-connected pieces of a mask, and of its background where it does not touch the border. Masks without any foreground \
are left out. Milliseconds are the median, without reading."""

    cases: Sequence[SaliencyCase]

    def about(self) -> dict[str, Any]:
        return {"device": str(self.cases[0].predictor.device)}

    def rows(self, runner: Runner) -> list[Row]:
        return [_row(case, self.samples, runner.answers(case, self.samples)) for case in self.cases]

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
        headings = ["model", "tokenizer", "cut on", "how", "IoU", "accuracy", "max F (β² = 0.3)", "own maxima",
                    "β = 1/3", "pieces", "holes", "tokens", "ms/image"]
        cells = [[row.model, row.tokenizer, *_words(row.cut), str(row.iou), str(row.accuracy), str(row.max_f),
                  f"{row.max_f_own.value:.4f}", f"{row.max_f_paper.value:.4f}", f"{row.pieces:.2f}",
                  f"{row.holes:.2f}", f"{row.tokens:.0f}",
                  f"{1000 * row.seconds:.0f}"] for row in rows]
        return [Sheet(headings, cells, words=4)]

    def pictures(self, rows: Sequence[Row]) -> dict[str, bytes]:
        return {f"page_{number}_{Path(row.model).name.split(' ')[0]}_{row.cut['cut_on']}.png": encode_png(
                    draw_page(case.name, case.run, row.scores, self.samples))
                for number, (case, row) in enumerate(zip(self.cases, rows, strict=True), start=1)}


def baseline_cases(predictor: Predictor, size: int | None) -> list[SaliencyCase]:
    """A model on square patches under TokenCut's own settings; a ViT in timm's names keeps its own patches."""
    square = predictor if predictor.model.config.tokenizer == "patch" else predictor.with_tokenizer("patch")
    named = Predictor(square.model, f"{predictor.name} (baseline)")
    return [SaliencyCase(named, question.replace(size=size)) for question in TOKENCUT]


def _row(case: SaliencyCase, samples: Sequence[Sample], records: Sequence[Record]) -> Row:
    values = [record for record in records if record["foreground"]]
    if not values:
        raise ValueError(f"expected masks with some foreground, got {len(records)} without any")
    threshold, max_f = _max_f(_curves(values, BETA2))
    return Row(
        model=case.predictor.name, tokenizer=case.predictor.model.config.tokenizer,
        cut={**case.question.to_dict(), "method": case.method, "merge": case.merged},
        images=len(values), empty=len(records) - len(values),
        iou=share([record["iou"] for record in values]), accuracy=share([record["accuracy"] for record in values]),
        max_f=max_f, threshold=threshold, max_f_own=share([float(own.max()) for own in _curves(values, OWN_BETA2)]),
        max_f_paper=_max_f(_curves(values, PAPER_BETA2))[1],
        tokens=fmean(record["tokens"] for record in values), pieces=fmean(record["pieces"] for record in values),
        holes=fmean(record["holes"] for record in values), seconds=median(record["seconds"] for record in values),
        scores={sample.name: record["iou"] for sample, record in zip(samples, records, strict=True)
                if record["foreground"]})


def _curves(records: Sequence[Record], beta2: float) -> list[NDArray[np.float64]]:
    """F of each image at each threshold."""
    curves = []
    for record in records:
        stored = np.frombuffer(base64.b64decode(record["positives_and_hits"]), "<i4").astype(np.int64)
        positives, hits = stored.reshape(2, -1)
        curves.append(f_measure(positives, hits, record["foreground"], beta2))
    return curves


def _max_f(curves: Sequence[NDArray[np.float64]]) -> tuple[float, Score]:
    """The best threshold of all images together, and F at it."""
    best = best_threshold(curves)
    return best / (len(curves[0]) - 1), share([float(curve[best]) for curve in curves])


def _words(cut: dict[str, Any]) -> tuple[str, str]:
    """What was cut, and how."""
    how = [cut["method"], "own τ" if cut["tau"] is None else f"τ {cut['tau']:.3g}", cut["foreground"]]
    how += [f"{cut['size']} px"] if cut["size"] else []
    how += ["clean"] if cut["clean"] else []
    how += ["merged"] if cut["merge"] else []
    return cut["cut_on"] + ("" if cut["layer"] == -1 else f" of layer {cut['layer']}"), ", ".join(how)
