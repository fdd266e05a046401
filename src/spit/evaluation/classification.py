"""Accuracy of models on labelled images, by their own head, by neighbours, or by a fitted head (§3.1)."""

import base64
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from spit.data.crops import central_square
from spit.data.images import load_image
from spit.documents import Sheet
from spit.evaluation.heads import fit_linear, knn_scores
from spit.evaluation.intervals import Score, proportion, scipy_stats
from spit.evaluation.options import Head, RealLabels, Tokenizers
from spit.evaluation.runner import ModelCase, Protocol, Record, Runner
from spit.evaluation.samples import LabelledFolder, Sample, class_indices
from spit.evaluation.tokenizers import Variant, variants_of
from spit.model import Output
from spit.predictor import Predictor
from spit.wording import plural

IMAGENET = 1000
TOP = 5
RUNS = ('"±" is the standard deviation over five runs, seeds 0 to 4, of a model whose tokens are random; the value is '
        "their mean.")
EQUAL = "All tokenizers make as many tokens of an image as the first one; images/s includes the counting."


class SquareCase(ModelCase):
    """A model that sees central squares of one size, as classifiers are evaluated."""

    def read(self, sample: Sample) -> Tensor:
        return central_square(load_image(sample.image), self.predictor.size, self.predictor.model.config.eval_crop)

    def prepare(self, loaded: list[Tensor]) -> Tensor:
        """``(B, 3, size, size)`` on the device."""
        return torch.stack(loaded).to(self.predictor.device)


@dataclass(frozen=True)
class AnswerCase(SquareCase):
    """A model's five likeliest classes, its number of tokens, and its class tokens if asked for."""

    class_tokens: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.predictor.name

    def config(self) -> dict[str, Any]:
        return {**super().config(), "class_tokens": self.class_tokens}

    @torch.inference_mode()
    def run(self, batch: Tensor, runner: Runner) -> Output:
        output: Output = self.predictor.model(batch, record=())
        return output

    def records(self, found: Output, loaded: list[Tensor]) -> list[Record]:
        classes = self.predictor.model.config.num_classes
        top = found.logits.float().topk(min(TOP, classes), dim=1).indices.tolist() if classes else [[] for _ in loaded]
        records: list[Record] = [{"top": best, "tokens": count}
                                 for best, count in zip(top, found.partition.counts.tolist(), strict=True)]
        if self.class_tokens:
            for record, token in zip(records, found.class_token.float().cpu().numpy(), strict=True):
                record["class_token"] = base64.b64encode(token.astype("<f4").tobytes()).decode()
        return records


def class_tokens(records: Sequence[Record]) -> Tensor:
    """The class tokens of records, ``(n, D)`` float32."""
    return torch.from_numpy(np.stack([np.frombuffer(base64.b64decode(record["class_token"]), "<f4")
                                      for record in records]))


@dataclass(frozen=True)
class Result:
    """One model over a folder, every run, image by image.

    Attributes:
        ranked: for each run the classes of each image, from the likeliest, at most five.
        truth: the class of each image.
        classes: how many classes it chose among.
        answers: for each run the records of :class:`AnswerCase`.
        penalties: the L2 penalty of each run's linear head; empty for other heads.
    """

    ranked: list[list[list[int]]]
    truth: list[int]
    classes: int
    answers: list[list[Record]]
    penalties: list[float]

    def right(self, within: int = 1) -> list[list[float]]:
        """For each run and image, 1 if the true class is among the first ``within``, else 0."""
        return [[float(label in best[:within]) for best, label in zip(run, self.truth, strict=True)]
                for run in self.ranked]

    def accuracy(self, within: int = 1) -> Score | None:
        """The share of right answers; None if ``within`` holds every class."""
        return proportion(self.right(within)) if within < self.classes else None

    def real_accuracy(self, real: RealLabels, indices: Sequence[int] | None = None) -> Score | None:
        """The share of first answers among an image's ReaL labels, over images that have labels.

        Args:
            indices: ImageNet's index of each class, if they differ.
        """
        counted = [index for index, labels in enumerate(real) if labels]
        if not counted:
            return None
        names = range(self.classes) if indices is None else indices
        return proportion([[float(names[run[index][0]] in real[index]) for index in counted] for run in self.ranked])

    def class_accuracy(self) -> float:
        """The mean over the classes of their own share of right answers."""
        shares: dict[int, list[float]] = {}
        for label, marks in zip(self.truth, zip(*self.right(), strict=True), strict=True):
            shares.setdefault(label, []).append(fmean(marks))
        return fmean(fmean(marks) for marks in shares.values())

    @property
    def tokens(self) -> float:
        """The mean number of tokens."""
        return fmean(answer["tokens"] for run in self.answers for answer in run)

    @property
    def images_per_second(self) -> float:
        """By the median time, which a busy moment of the machine does not change."""
        return float(1 / median(answer["seconds"] for run in self.answers for answer in run))


def classify(runner: Runner, runs: Sequence[Predictor], test: LabelledFolder) -> Result:
    """The own answers of all runs of a model on every image."""
    indices = check_classes(runs[0], test)
    answers = [runner.answers(AnswerCase(one), test.images) for one in runs]
    return Result([[answer["top"] for answer in run] for run in answers], [indices[label] for label in test.labels],
                  runs[0].model.config.num_classes, answers, [])


def check_classes(predictor: Predictor, test: LabelledFolder) -> list[int]:
    """The logit of each class of a folder; raises ImageError if its classes are not the model's."""
    return class_indices(test, predictor.model.config.num_classes, predictor.model.config.class_names)


class SquareProtocol(Protocol):
    """A protocol whose models see the central squares of labelled images, each model on one tokenizer or several.

    Args:
        known: whether the folder's classes must be the models' own.
        tokenizers: those of every model (default: see :meth:`default`).
    """

    def __init__(self, predictors: Sequence[Predictor], test: LabelledFolder, known: bool = True,
                 tokenizers: Tokenizers = Tokenizers()) -> None:  # noqa: B008
        super().__init__(test.root, test.images)
        scipy_stats()  # a missing package is reported before the work
        self.predictors, self.test, self.tokenizers = predictors, test, tokenizers
        for one in predictors if known else ():
            check_classes(one, test)
        self.variants = [variants_of(one, tokenizers.tokenizer or self.default(one), tokenizers.equal_counts)
                         for one in predictors]

    def default(self, predictor: Predictor) -> Sequence[str]:
        """The tokenizers of a model if none are given; none for its own."""
        return ()

    @property
    def runs(self) -> int:
        """How often every image is answered for."""
        return sum(len(one.runs) for variants in self.variants for one in variants)

    @property
    def total(self) -> int:
        return len(self.samples) * self.runs

    def settings(self, runner: Runner) -> dict[str, Any]:
        sizes = sorted({one.size for one in self.predictors})
        equal = {"equal_counts": self.variants[0][0].tokenizer} if self.tokenizers.equal_counts else {}
        return {"size": sizes[0] if len(sizes) == 1 else sizes, "precision": runner.precision, **equal}

    def about(self) -> dict[str, Any]:
        return {"device": str(self.predictors[0].device)}

    def notes_for(self, rows: Sequence[Any]) -> str:
        random = any(len(one.runs) > 1 for variants in self.variants for one in variants)
        return " ".join([self.notes, *([RUNS] if random else []), *([EQUAL] if self.tokenizers.equal_counts else [])])

    def rows(self, runner: Runner) -> list[Any]:
        return [row for variants in self.variants for row in self.rows_of(variants, runner)]

    @abstractmethod
    def rows_of(self, variants: Sequence[Variant], runner: Runner) -> list[Any]:
        """The rows of one model."""


@dataclass(frozen=True)
class Row:
    """One model's figures; ``top5`` and ``real`` are None where they do not apply."""

    model: str
    tokenizer: str
    head: str
    runs: int
    images: int
    top1: Score
    top5: Score | None
    real: Score | None
    class_accuracy: float
    tokens: float
    images_per_second: float
    penalties: list[float]


class Classification(SquareProtocol):
    """Every model over a folder of labelled images.

    The short side is resized to size/0.875, bicubic, and the central square taken, as DeiT does; a model's
    ``eval_crop`` changes that. A model on Voronoi cells is run five times, seeds 0 to 4. Without ``tokenizers`` each
    model is measured on its own.

    Args:
        test, train: images to test on, and for the knn and linear heads images to learn from.
        head: what names the class.
        real: the ReaL labels of each image, see :func:`spit.evaluation.samples.read_real`.

    Raises:
        ValueError: training images for logits, or none for another head.
        ImageError: the folder's classes are not the model's or the training folder's.
    """

    title = "Classification"
    notes: ClassVar[str] = """\
Shares of right answers with Wilson's 95 % interval over the images. "By class" is the mean of each class's own share. \
Images/s is the model alone, by its median time."""

    def __init__(self, predictors: Sequence[Predictor], test: LabelledFolder, head: Head = Head(),  # noqa: B008
                 train: LabelledFolder | None = None, real: RealLabels | None = None,
                 tokenizers: Tokenizers = Tokenizers()) -> None:  # noqa: B008
        if (head.head == "logits") != (train is None):
            raise ValueError("knn and linear heads learn from training images, and logits take none; got "
                             f"{head.head} {'without' if train is None else 'with'} training images")
        super().__init__(predictors, test if train is None else test.with_classes(train.classes), train is None,
                         tokenizers)
        self.head, self.train, self.real = head, train, real
        self.indices = None if train is None or real is None else class_indices(train, IMAGENET)

    @property
    def total(self) -> int:
        return (len(self.samples) + (0 if self.train is None else len(self.train.images))) * self.runs

    def settings(self, runner: Runner) -> dict[str, Any]:
        taught = {} if self.train is None else {
            "train": f"{plural(len(self.train.images), 'image')} of {self.train.root}"}
        return {**super().settings(runner), **taught}

    def about(self) -> dict[str, Any]:
        return {**super().about(), "head": self.head.head, "interval": "Wilson, 95 %"}

    def rows_of(self, variants: Sequence[Variant], runner: Runner) -> list[Row]:
        return [self._row(one, runner) for one in variants]

    def _row(self, variant: Variant, runner: Runner) -> Row:
        runs = variant.runs
        result = classify(runner, runs, self.test) if self.train is None else self._learn(runs, runner, self.train)
        return Row(
            model=runs[0].name, tokenizer=variant.tokenizer, head=self.head.head,
            runs=len(result.ranked), images=len(result.truth), top1=proportion(result.right()),
            top5=result.accuracy(TOP),
            real=None if self.real is None else result.real_accuracy(self.real, self.indices),
            class_accuracy=result.class_accuracy(), tokens=result.tokens, images_per_second=result.images_per_second,
            penalties=result.penalties)

    def notes_for(self, rows: Sequence[Row]) -> str:
        notes = super().notes_for(rows)
        return f"{notes} ReaL counts images with a label." if any(row.real for row in rows) else notes

    def _learn(self, runs: Sequence[Predictor], runner: Runner, train: LabelledFolder) -> Result:
        """Name classes by a head that learns from the class tokens of the training images."""
        result = Result([], self.test.labels, len(train.classes), [], [])
        device = runs[0].device
        labels = torch.tensor(train.labels, device=device)
        for one in runs:
            learned, asked = (runner.answers(AnswerCase(one, class_tokens=True), images)
                              for images in (train.images, self.samples))
            tokens, queries = (class_tokens(records).to(device) for records in (learned, asked))
            if self.head.head == "knn":
                scores = knn_scores(tokens, labels, queries, result.classes, self.head.neighbors, self.head.temperature)
            else:
                fitted = fit_linear(tokens, labels, result.classes)
                scores = fitted(queries)
                result.penalties.append(fitted.penalty)
            result.ranked.append(scores.topk(min(TOP, result.classes), dim=1).indices.tolist())
            result.answers.append(asked)
        return result

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
        headings = ["model", "tokenizer", "head", "top-1", "top-5", "ReaL", "by class", "tokens", "images/s"]
        cells = [[row.model, row.tokenizer, row.head, str(row.top1), str(row.top5 or ""), str(row.real or ""),
                  f"{row.class_accuracy:.4f}", f"{row.tokens:.1f}", f"{row.images_per_second:.1f}"] for row in rows]
        filled = [column for column in range(len(headings)) if any(row[column] for row in cells)]
        return [Sheet([headings[column] for column in filled], [[row[column] for column in filled] for row in cells],
                      words=3)]
