"""How often models are right on labelled images, by their own head, by neighbours, or by a fitted head (§3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import torch
from torch import Tensor

from spit.evaluation.answers import TOP, Answer, Examiner, Subject
from spit.evaluation.intervals import Score, proportion
from spit.evaluation.knn import NEIGHBORS, TEMPERATURE, knn_scores
from spit.evaluation.labelled import LabelledFolder, class_indices
from spit.evaluation.linear import fit_linear
from spit.evaluation.sheets import Sheet

HEADS = ("logits", "knn", "linear")
IMAGENET = 1000
Ranked = list[tuple[int, ...]]  # for each image, classes from the likeliest


@dataclass(frozen=True)
class Head:
    """What names the class.

    Attributes:
        kind: "logits" for the model's own head; "knn" or "linear" over class tokens.
        train: the images that the latter two learn from.
        neighbors, temperature: of "knn", see :func:`knn_scores`.
    """

    kind: str = "logits"
    train: LabelledFolder | None = None
    neighbors: int = NEIGHBORS
    temperature: float = TEMPERATURE

    def __post_init__(self) -> None:
        if self.kind not in HEADS:
            raise ValueError(f"expected a head among {', '.join(HEADS)}, got {self.kind!r}")
        if (self.kind == "logits") != (self.train is None):
            raise ValueError("knn and linear heads learn from training images; logits take none; got "
                             f"{self.kind} {'without' if self.train is None else 'with'} training images")


@dataclass(frozen=True)
class Result:
    """One model over a folder, every run, image by image.

    Attributes:
        ranked: for each run the classes of each image, from the likeliest, five at most.
        truth: the class of each image.
        classes: among how many it chose.
        answers: for each run, what the model said.
        penalties: the L2 penalty that each run's linear head chose; empty for other heads.
    """

    ranked: list[Ranked]
    truth: list[int]
    classes: int
    answers: list[list[Answer]]
    penalties: list[float]

    def right(self, within: int = 1) -> list[list[float]]:
        """For each run and image, 1 where the true class is among the first ``within``, else 0."""
        return [[float(label in best[:within]) for best, label in zip(run, self.truth, strict=True)]
                for run in self.ranked]

    def accuracy(self, within: int = 1) -> Score | None:
        """The share of right answers; None where ``within`` holds every class."""
        return proportion(self.right(within)) if within < self.classes else None

    def real_accuracy(self, real: Sequence[frozenset[int]]) -> Score | None:
        """The share of first answers among an image's ReaL labels; images without any are left out."""
        counted = [index for index, labels in enumerate(real) if labels]
        if not counted:
            return None
        return proportion([[float(run[index][0] in real[index]) for index in counted] for run in self.ranked])

    def class_accuracy(self) -> float:
        """The mean over the classes of their own share of right answers."""
        shares: dict[int, list[float]] = {}
        for label, marks in zip(self.truth, zip(*self.right(), strict=True), strict=True):
            shares.setdefault(label, []).append(fmean(marks))
        return fmean(fmean(marks) for marks in shares.values())

    @property
    def tokens(self) -> float:
        """The mean number of tokens."""
        return fmean(answer.tokens for run in self.answers for answer in run)

    @property
    def images_per_second(self) -> float:
        """By the median time, since a shared machine has its moments."""
        return 1 / median(answer.seconds for run in self.answers for answer in run)


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


def examine(examiner: Examiner, subject: Subject, test: LabelledFolder, head: Head) -> Result:
    """Ask one model about every image, five times where its tokens are random."""
    if head.train is None:
        indices = class_indices(test, subject.model.config.num_classes, subject.model.config.class_names)
        answers = [examiner.ask(run, test) for run in subject.runs]
        return Result([[answer.top for answer in run] for run in answers], [indices[label] for label in test.labels],
                      subject.model.config.num_classes, answers, [])
    test = test.with_classes(head.train.classes)
    ranked, answers, penalties = [], [], []
    for run in subject.runs:
        learned, asked = (examiner.ask(run, folder, class_tokens=True) for folder in (head.train, test))
        tokens, labels = _class_tokens(learned, examiner), torch.tensor(head.train.labels, device=examiner.setup.device)
        queries, classes = _class_tokens(asked, examiner), len(head.train.classes)
        if head.kind == "knn":
            scores = knn_scores(tokens, labels, queries, classes, head.neighbors, head.temperature)
        else:
            fitted = fit_linear(tokens, labels, classes)
            scores = fitted(queries)
            penalties.append(fitted.penalty)
        ranked.append([tuple(best) for best in scores.topk(min(TOP, classes), dim=1).indices.tolist()])
        answers.append(asked)
    return Result(ranked, test.labels, len(head.train.classes), answers, penalties)


def evaluate(examiner: Examiner, subjects: Sequence[Subject], test: LabelledFolder, head: Head = Head(),  # noqa: B008
             real: Sequence[frozenset[int]] | None = None) -> list[Row]:
    """Every model over a folder of labelled images.

    The short side is resized to size/0.875, bicubic, and the central square taken, as the paper and DeiT
    evaluate. Intervals are Wilson's at 95 %. A model on Voronoi cells is run five times, seeds 0 to 4.

    Args:
        real: the ReaL labels of each image, see :func:`spit.evaluation.labelled.read_real`.

    Raises:
        ImageError: the folder's classes are not the model's or the training folder's, or an image is damaged.
    """
    for subject in subjects:  # what cannot work is told before an hour has passed
        if head.train is None:
            class_indices(test, subject.model.config.num_classes, subject.model.config.class_names)
        elif real is not None:
            class_indices(head.train, IMAGENET)
        examiner.expect(len(subject.runs) * (len(test.images) + (0 if head.train is None else len(head.train.images))))
    return [_row(subject, examine(examiner, subject, test, head), head, real) for subject in subjects]


def _row(subject: Subject, result: Result, head: Head, real: Sequence[frozenset[int]] | None) -> Row:
    seen = result
    if real is not None and head.train is not None:  # places among the folder's classes, as ReaL numbers them
        indices = class_indices(head.train, IMAGENET)
        seen = Result([[tuple(indices[place] for place in best) for best in run] for run in result.ranked],
                      result.truth, result.classes, result.answers, [])
    return Row(
        model=subject.name, tokenizer=subject.model.config.tokenizer, head=head.kind, runs=len(result.ranked),
        images=len(result.truth), top1=proportion(result.right()), top5=result.accuracy(TOP),
        real=None if real is None else seen.real_accuracy(real), class_accuracy=result.class_accuracy(),
        tokens=result.tokens, images_per_second=result.images_per_second, penalties=result.penalties,
    )


def sheet(rows: Sequence[Row], about: str) -> Sheet:
    """The rows as a table."""
    cells = [[row.model, row.tokenizer, row.head, str(row.top1), str(row.top5 or ""), str(row.real or ""),
              f"{row.class_accuracy:.4f}", f"{row.tokens:.1f}", f"{row.images_per_second:.1f}"] for row in rows]
    return Sheet("Classification", ["model", "tokenizer", "head", "top-1", "top-5", "ReaL", "by class", "tokens",
                                    "images/s"], cells, about, 3, NOTES)


def _class_tokens(answers: Sequence[Answer], examiner: Examiner) -> Tensor:
    tokens: list[Any] = [answer.class_token for answer in answers]
    return torch.stack(tokens).to(examiner.setup.device)


NOTES = """\
Shares of right answers with Wilson's 95 % interval over the images. "±" is the standard deviation over five runs, \
seeds 0 to 4, of a model whose tokens are random; the value is their mean. ReaL leaves out images without a label. \
"By class" is the mean of each class's own share. Images/s is the model alone, by its median time."""
