"""Unsupervised saliency: TokenCut on tokens against human masks (§3.2, Table 3, App. E)."""

import base64
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spit import __version__
from spit.evaluation.answers import THREADS, Subject
from spit.evaluation.intervals import Score, share
from spit.evaluation.lines import Lines, Record, case_of
from spit.evaluation.saliency_data import Sample, Truth
from spit.evaluation.saliency_metrics import (
    BETA2,
    PAPER_BETA2,
    THRESHOLDS,
    best_threshold,
    f_measure,
    score,
)
from spit.evaluation.sheets import Sheet
from spit.segmentation.cut import Cut
from spit.segmentation.saliency import segment_with

Progress = Callable[[str, int, int], None]
TOKENCUT = (Cut(tau=0.2, features="keys", foreground="largest"), Cut(tau=0.2, features="tokens", foreground="largest"))
"""The baseline: TokenCut's own τ and rule, on keys as it does and on final features as App. E does."""


@dataclass(frozen=True)
class Contender:
    """A model with a way to cut its tokens."""

    subject: Subject
    cut: Cut

    @property
    def name(self) -> str:
        return self.subject.name

    def __str__(self) -> str:
        return f"{self.name}, {self.cut.features}"


@dataclass(frozen=True)
class Row:
    """One contender's figures.

    Attributes:
        images: how many were counted; ``empty`` more have a mask without any foreground and are in no figure.
        max_f: F at the best threshold of all images together, β² = 0.3; ``threshold`` is that one.
        max_f_paper: the same with β = 1/3, at its own best threshold.
        seconds: the median of an image's share of its batch, reading left out.
        scores: IoU of every counted image by its name.
    """

    model: str
    tokenizer: str
    cut: dict[str, Any]
    images: int
    empty: int
    max_f: Score
    threshold: float
    max_f_paper: Score
    iou: Score
    accuracy: Score
    tokens: float
    seconds: float
    scores: dict[str, float] = field(repr=False)


def evaluate(contenders: Sequence[Contender], samples: Sequence[Sample], journal: Path | None = None,
             batch: int = 1, progress: Progress = lambda *_: None) -> list[Row]:
    """Every contender over all images.

    F is computed at 255 thresholds for each image, averaged over the images, and then the maximum taken; IoU
    and accuracy are those of the mask, the soft map above 0.5, averaged over the images.

    Args:
        journal: a file of JSON lines to add to, and to take up where an earlier run was stopped.
        batch: images at once; on a CPU they are worked on one by one all the same.
        progress: called with what is being done, images done, and images in all.

    Raises:
        ImageError: an image or a mask cannot be read; what was done before it is kept.
        ValueError: no image has any foreground.
    """
    rows, done = [], 0
    with Lines(journal) as lines:
        for contender in contenders:
            case = _case(contender, samples)
            missing = [sample for sample in samples if sample.name not in lines.records(case)]
            if batch > 1:
                missing.sort(key=Sample.size)  # images of one size are cut into tokens together
            done += len(samples) - len(missing)
            progress(str(contender), done, len(samples) * len(contenders))
            for number, (chunk, loaded) in enumerate(_batches(missing, batch)):
                if number == 0:  # the first call compiles kernels: it is not what an image takes
                    _records(contender, chunk[:1], loaded[:1])
                lines.add(case, _records(contender, chunk, loaded))
                done += len(chunk)
                progress(str(contender), done, len(samples) * len(contenders))
            records = lines.records(case)
            rows.append(_row(contender, {sample.name: records[sample.name] for sample in samples}))
    return rows


def _case(contender: Contender, samples: Sequence[Sample]) -> str:
    subject = contender.subject
    root = samples[0].image.resolve().as_posix().removesuffix(samples[0].name + samples[0].image.suffix)
    return case_of(model=subject.digest, config=subject.model.config.to_dict(), cut=asdict(contender.cut),
                   data=root, masks=samples[0].mask.resolve().parent.as_posix(),
                   device=subject.model.embedder.class_token.device.type, spit=__version__)


def _batches(samples: Sequence[Sample],
             batch: int) -> Iterator[tuple[Sequence[Sample], list[tuple[Tensor, Truth]]]]:
    """Samples with what is in their files, the next two batches read ahead."""
    waiting: deque[tuple[Sequence[Sample], list[Future[tuple[Tensor, Truth]]]]] = deque()
    with ThreadPoolExecutor(THREADS) as pool:
        try:
            for start in range(0, len(samples), batch):
                chunk = samples[start : start + batch]
                waiting.append((chunk, [pool.submit(sample.read) for sample in chunk]))
                if len(waiting) > 2:
                    chunk, files = waiting.popleft()
                    yield chunk, [file.result() for file in files]
            for chunk, files in waiting:
                yield chunk, [file.result() for file in files]
        finally:
            pool.shutdown(cancel_futures=True)


def _records(contender: Contender, samples: Sequence[Sample],
             loaded: Sequence[tuple[Tensor, Truth]]) -> list[Record]:
    model = contender.subject.model
    device = model.embedder.class_token.device
    images = [image.to(device) for image, _ in loaded]
    _wait(device)
    start = time.perf_counter()
    found = segment_with(model, images, contender.cut)
    _wait(device)
    seconds = (time.perf_counter() - start) / len(images)
    counts = found.partition.counts.tolist()
    records: list[Record] = []
    for index, (sample, (_, truth)) in enumerate(zip(samples, loaded, strict=True)):
        scores = score(found.saliency[index].cpu().numpy(), found.mask[index].cpu().numpy(), truth)
        curves = np.stack([scores.positives, scores.hits]).astype("<i4")
        records.append({
            "image": sample.name, "model": contender.name, "iou": round(scores.iou, 6),
            "accuracy": round(scores.accuracy, 6), "f": round(float(scores.f_measure().max()), 6),
            "foreground": scores.foreground, "tokens": counts[index], "seconds": round(seconds, 6),
            "positives_and_hits": base64.b64encode(curves.tobytes()).decode()})
    return records


def _row(contender: Contender, records: dict[str, Record]) -> Row:
    counted = {name: record for name, record in records.items() if record["foreground"]}
    if not counted:
        raise ValueError(f"expected masks with some foreground, got {len(records)} without any")
    curves: dict[float, list[Any]] = {BETA2: [], PAPER_BETA2: []}
    for record in counted.values():
        stored = np.frombuffer(base64.b64decode(record["positives_and_hits"]), "<i4").reshape(2, THRESHOLDS)
        positives, hits = stored.astype(np.int64)
        for beta2, measured in curves.items():
            measured.append(f_measure(positives, hits, record["foreground"], beta2))
    best = {beta2: best_threshold(measured) for beta2, measured in curves.items()}
    f = {beta2: share([float(curve[best[beta2]]) for curve in measured]) for beta2, measured in curves.items()}
    values = list(counted.values())
    return Row(
        model=contender.name, tokenizer=contender.subject.model.config.tokenizer, cut=asdict(contender.cut),
        images=len(counted), empty=len(records) - len(counted), max_f=f[BETA2],
        threshold=best[BETA2] / (THRESHOLDS - 1), max_f_paper=f[PAPER_BETA2],
        iou=share([record["iou"] for record in values]), accuracy=share([record["accuracy"] for record in values]),
        tokens=fmean(record["tokens"] for record in values), seconds=median(record["seconds"] for record in values),
        scores={name: record["iou"] for name, record in counted.items()})


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def sheet(rows: Sequence[Row], about: str) -> Sheet:
    """The rows as a table."""
    cells = []
    for row in rows:
        cut = row.cut
        threshold = "own τ" if cut["tau"] is None else f"τ {cut['tau']:.3g}"
        how = f"{threshold}, {cut['foreground']}" + (f", {cut['size']} px" if cut["size"] else "") + (
            f", {cut['scales']} scales" if cut["scales"] > 1 else "") + (
            f", {cut['refine']}" if cut["refine"] else "")
        layer = "" if cut["layer"] == -1 else f" of layer {cut['layer']}"
        cells.append([row.model, row.tokenizer, cut["features"] + layer, how, str(row.max_f),
                      f"{row.max_f_paper.value:.4f}", str(row.iou), str(row.accuracy), f"{row.tokens:.0f}",
                      f"{1000 * row.seconds:.0f}"])
    return Sheet("Unsupervised saliency", ["model", "tokenizer", "cut on", "how", "max F (β² = 0.3)", "β = 1/3", "IoU",
                                           "accuracy", "tokens", "ms/image"], cells, about, 4, NOTES)


NOTES = """\
TokenCut, no post-processing unless named. Max F: F at 255 thresholds for each image, averaged over the images, then \
the maximum; IoU and accuracy of the mask at 0.5, averaged over the images; 95 % normal intervals over the images. \
Masks without any foreground are left out. Milliseconds are the median, reading left out."""
