"""Classify: the likeliest classes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spit.answers.question import Question
from spit.options import documented, option

if TYPE_CHECKING:
    from spit.predictor import Prediction


@dataclass(frozen=True)
class RankedClass:
    """A class among the likeliest."""

    index: int
    name: str
    probability: float

    def to_dict(self) -> dict[str, Any]:
        """The class as JSON has it."""
        return dict(vars(self))


@documented
@dataclass(frozen=True)
class Classify(Question):
    """Which classes are the likeliest; of the central square, as classifiers are evaluated."""

    top: int = option(5, "Number of classes to name", least=1)
    crop: bool = True
    size: int | None = None

    def of(self, prediction: "Prediction") -> list[list[RankedClass]]:
        """The ranking of each image; all classes if there are fewer."""
        names = prediction.predictor.class_names
        return [[RankedClass(index, names[index], float(row[index])) for index in indices] for row, indices in zip(
            prediction.probabilities, prediction.top_classes(self.top).tolist(), strict=True)]
