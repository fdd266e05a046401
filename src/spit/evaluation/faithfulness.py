"""Comprehensiveness and sufficiency of attributions (§3.2, Table 2, App. D)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from spit import __version__
from spit.attribution import Method, occlude, rank_pixels
from spit.data.folders import image_paths
from spit.evaluation.answers import Progress, Setup, Subject, batches
from spit.evaluation.faithfulness_ttest import TTest, paired_ttest
from spit.evaluation.intervals import Score, mean
from spit.evaluation.labelled import LabelledFolder, LabelledImage
from spit.evaluation.lines import Lines, Record, case_of
from spit.evaluation.sheets import Sheet
from spit.model import SpitModel

QUANTILES = (0.01, 0.05, 0.2, 0.5)  # Q of App. D
CURVE = (0.1, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)  # further shares, for smooth curves
BASES = ("lime", "random")  # what methods are tested against
PAPER = {  # Table 2, B16 models: comprehensiveness and sufficiency
    ("patch", "lime"): (0.244, 0.543), ("patch", "flow"): (0.160, 0.664), ("patch", "prototype"): (0.206, 0.710),
    ("voronoi", "lime"): (0.236, 0.591), ("voronoi", "flow"): (0.223, 0.685), ("voronoi", "prototype"): (0.209, 0.691),
    ("superpixel", "lime"): (0.244, 0.520), ("superpixel", "flow"): (0.259, 0.558),
    ("superpixel", "prototype"): (0.256, 0.592),
}


@dataclass(frozen=True)
class Faithfulness:
    """One method on one model, image by image.

    Attributes:
        shares: of the pixels, the most important ones, in rising order; Q are among them.
        whole: the probability of the class that the model sees in each image.
        blank: the same of nothing but the mean colour.
        removed: for each image and share, without the most important pixels.
        kept: for each image and share, with nothing but them.

    Shape:
        whole, blank ``(n,)``; removed, kept ``(n, shares)``; float64.
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
        """``1/|Q| Σ_q (Φ(x) − Φ(x ∖ x_{>q}))`` of each image; more is better."""
        return self._drop(self.removed)

    def sufficiency(self) -> list[float]:
        """``1/|Q| Σ_q (Φ(x) − Φ(x ∖ x_{≤q}))`` of each image; less is better."""
        return self._drop(self.kept)

    def deletion(self) -> tuple[list[float], list[float]]:
        """Shares removed from 0 to 1, and the mean probability that is left."""
        return [0.0, *self.shares, 1.0], _means(self.whole, self.removed, self.blank)

    def insertion(self) -> tuple[list[float], list[float]]:
        """Shares shown from 0 to 1, and the mean probability that there is."""
        return [0.0, *self.shares, 1.0], _means(self.blank, self.kept, self.whole)

    def _drop(self, probabilities: Tensor) -> list[float]:
        columns = [self.shares.index(quantile) for quantile in QUANTILES]
        drops: list[float] = (self.whole - probabilities[:, columns].mean(1)).tolist()
        return drops


@dataclass(frozen=True)
class Row:
    """One method on one model.

    Attributes:
        comprehensiveness, sufficiency: means over the images with 95 % intervals.
        paper: the paper's two figures for a B16 model on such tokens; None where it has none.
        tests: by "comprehensiveness > lime" and the like, whether this method is better on the same images.
        deletion, insertion: the mean probability at each of ``shares``.
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


def plain_folder(root: str | Path) -> LabelledFolder:
    """All images of a folder, at any depth; no class is asked for, and none is told.

    Raises:
        ImageError: no such folder, or no images.
    """
    root = Path(root)
    images = tuple(LabelledImage(path, path.relative_to(root).as_posix(), 0) for path in image_paths(root))
    return LabelledFolder(root, ("",), images)


def evaluate(setup: Setup, cases: Sequence[tuple[Subject, Method]], folder: LabelledFolder,
             journal: Path | None = None, progress: Progress = lambda *_: None,
             further: Sequence[float] = ()) -> list[Faithfulness]:
    """Measure every case on every image's central square.

    Args:
        cases: models, each with a method.
        journal: a file of answers to add to, and to take up where an earlier run was stopped.
        further: shares beside Q, for smoother curves; each costs two forward passes an image.

    Raises:
        ImageError: an image cannot be read; what was measured before it is kept.
        ValueError: a model without classes.
    """
    shares = tuple(sorted({*QUANTILES, *further}))
    for subject, _ in cases:
        if subject.model.config.num_classes == 0:
            raise ValueError(f"{subject.name}: expected a model that knows classes, got one without a head")
    total, done, answers = len(cases) * len(folder.images), 0, []
    with Lines(journal) as lines:
        for subject, method in cases:
            case = case_of(model=subject.digest, config=subject.model.config.to_dict(), method=method.name,
                           options=method.config(), data=str(folder.root.resolve()), size=setup.size, shares=shares,
                           precision=setup.precision, device=setup.device.type, spit=__version__)
            missing = [image for image in folder.images if image.name not in lines.records(case)]
            done += len(folder.images) - len(missing)
            doing = f"{subject.name}, {method.name}"
            progress(doing, done, total)
            for images, pixels in batches(missing, setup):
                records = probe(subject.model, method, pixels.to(setup.device), shares, setup)
                lines.add(case, [{"image": image.name, "model": subject.name, "method": method.name, **record}
                                 for image, record in zip(images, records, strict=True)])
                done += len(images)
                progress(doing, done, total)
            known = lines.records(case)
            answers.append(_gather(subject, method, shares, [known[image.name] for image in folder.images]))
    return answers


def probe(model: SpitModel, method: Method, pixels: Tensor, shares: Sequence[float], setup: Setup) -> list[Record]:
    """The probabilities of each image's predicted class, whole and occluded, in batches over images and shares.

    Occluded images are tokenized anew, as the model would see them.

    Shape:
        pixels ``(B, 3, H, W)`` uint8.
    """
    with setup.autocast():
        with torch.no_grad():
            whole = model(pixels).float().softmax(1)
        classes = whole.argmax(1)
        ranks = rank_pixels(method(model, pixels, classes))
        variants = [(1.0, False), *((share, keep) for keep in (False, True) for share in shares)]
        found = torch.cat(list(_probabilities(model, pixels, ranks, classes, variants, setup.batch)))
    found = found.view(len(variants), len(pixels)).T.double().cpu()  # (B, 1 + 2 · shares)
    sure = whole.gather(1, classes[:, None])[:, 0].double().cpu()
    removed, kept = found[:, 1 : 1 + len(shares)], found[:, 1 + len(shares) :]
    return [{"class": label, "whole": _short(p), "blank": _short(row[0]), "removed": list(map(_short, gone)),
             "kept": list(map(_short, left))} for label, p, row, gone, left in zip(
                 classes.tolist(), sure.tolist(), found.tolist(), removed.tolist(), kept.tolist(), strict=True)]


@torch.no_grad()
def _probabilities(model: SpitModel, pixels: Tensor, ranks: Tensor, classes: Tensor,
                   variants: Sequence[tuple[float, bool]], batch: int) -> Iterator[Tensor]:
    """The probability of its class for every image of every variant, variant by variant."""
    together = max(1, batch // len(pixels))  # a few images fill a batch with several variants
    for start in range(0, len(variants), together):
        chosen = variants[start : start + together]
        occluded = torch.cat([occlude(pixels, ranks, share, keep) for share, keep in chosen])
        yield model(occluded).float().softmax(1).gather(1, classes.repeat(len(chosen))[:, None])[:, 0]


def summarize(results: Sequence[Faithfulness]) -> list[Row]:
    """Means, intervals and tests; methods are tested against LIME and the control where they are there."""
    rows = []
    for own in results:
        comprehensive, sufficient = own.comprehensiveness(), own.sufficiency()
        tests = {}
        for base in results:
            if base.model == own.model and base.method in BASES and base.method != own.method:
                tests[f"comprehensiveness > {base.method}"] = paired_ttest(comprehensive, base.comprehensiveness())
                tests[f"sufficiency < {base.method}"] = paired_ttest(base.sufficiency(), sufficient)
        shares, deletion = own.deletion()
        rows.append(Row(own.model, own.tokenizer, own.method, len(own.whole), mean(comprehensive), mean(sufficient),
                        PAPER.get((own.tokenizer, own.method)), tests, shares, deletion, own.insertion()[1]))
    return rows


def sheet(rows: Sequence[Row], about: str) -> Sheet:
    """Table 2: a row for each method, two columns for each model, then a row for each test."""
    models, methods = ([*dict.fromkeys(names)] for names in zip(*((row.model, row.method) for row in rows),
                                                               strict=True))
    found = {(row.model, row.method): row for row in rows}
    cells = []
    for method in methods:
        cells.append([method, *(text for model in models for text in _figures(found.get((model, method))))])
    for base in BASES:
        for method in methods:
            if base in methods and method != base and not (base == "lime" and method == "random"):
                names = (f"comprehensiveness > {base}", f"sufficiency < {base}")
                cells.append([f"{method} against {base}", *(
                    str((row.tests.get(name) if row is not None else None) or "")
                    for row in (found.get((model, method)) for model in models) for name in names)])
    headings = [f"{model} {metric}" for model in models for metric in ("Comp ↑", "Suff ↓")]
    return Sheet("Faithfulness of attributions", ["attribution", *headings], cells, about, 1, NOTES)


def _figures(row: Row | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    texts = []
    for index, score in enumerate((row.comprehensiveness, row.sufficiency)):
        paper = "" if row.paper is None else f"; paper {row.paper[index]:.3f}"
        texts.append(f"{score.value:.3f} ± {(score.high - score.low) / 2:.3f}{paper}")
    return texts[0], texts[1]


def _gather(subject: Subject, method: Method, shares: tuple[float, ...], records: Sequence[Record]) -> Faithfulness:
    columns = {name: torch.tensor([record[name] for record in records], dtype=torch.float64)
               for name in ("whole", "blank", "removed", "kept")}
    return Faithfulness(subject.name, subject.model.config.tokenizer, method.name, shares, **columns)


def _means(first: Tensor, middle: Tensor, last: Tensor) -> list[float]:
    return [fmean(column) for column in torch.cat([first[:, None], middle, last[:, None]], dim=1).T.tolist()]


def _short(probability: float) -> float:
    return round(probability, 7)


NOTES = """\
The drop in the probability of the predicted class, mean over Q = .01, .05, .2, .5 of the pixels: Comp without the \
most important ones, Suff with nothing but them. What is taken away becomes the image's mean colour, and the image is \
tokenized anew. "±" is half the normal 95 % interval over the images. Tests are paired over images and one-sided: \
Comp more, Suff less. "random" gives each token a random value. The paper's figures are of its B16 models."""
