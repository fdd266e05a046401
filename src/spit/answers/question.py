"""Question: what all questions have in common."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from spit.options import Options

if TYPE_CHECKING:
    from spit.predictor import Prediction, Predictor, Sources


class Question(Options):
    """Base of questions: frozen dataclasses of options. These modules import torch when a question is asked.

    Attributes:
        crop: whether the model sees the central square of an image, or all of it.
        size: shorter side that the model sees; see :class:`spit.Predictor`.
    """

    crop: bool
    size: int | None

    def see(self, predictor: "Predictor", images: "Sources") -> "Prediction":
        """A prediction of images as the question wants them seen."""
        return predictor(images, crop=self.crop, size=self.size)

    @abstractmethod
    def of(self, prediction: "Prediction") -> Any:
        """The answer for images that the model has seen; ``crop`` and ``size`` are the prediction's."""

    def ask(self, predictor: "Predictor", images: "Sources") -> Any:
        """See images, and answer."""
        return self.of(self.see(predictor, images))
