"""Recorded answers of the embedded models: made once, read by ``spit doctor`` on every machine.

``python -m spit.doctor.record`` writes them again, after other weights or other preprocessing.
"""

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from torch import Tensor

from spit.bench.photos import sample_photos
from spit.predictor import Predictor

FILE = "answers.json"
SAMPLES = ("astronaut.png", "chelsea.png", "coffee.png")
TOP = 5
TOLERANCE = 2e-3  # of logits: other processors sum in other orders


@dataclass(frozen=True)
class Recorded:
    """One model on one image.

    Attributes:
        pixels: SHA-256 of the square that the model saw.
        labels: SHA-256 of its partition, int32.
        tokens: number of regions.
        logits: the five largest, by the index of the class.
    """

    pixels: str
    labels: str
    tokens: int
    logits: dict[int, float]


@dataclass(frozen=True)
class Answers:
    """All recorded answers, by model and image, and the digests of the models' weights."""

    digests: dict[str, str]
    answers: dict[str, dict[str, Recorded]]


def sample_paths() -> list[Path]:
    """The sample images; raises MissingExtra if scikit-image is not installed."""
    return sample_photos(list(SAMPLES), "demo", "the sample images of spit doctor")


def answer(predictor: Predictor, path: Path) -> Recorded:
    """What a model says about an image now."""
    prediction = predictor(path)
    classes = prediction.top_classes(TOP)[0].tolist()
    logits = {index: float(prediction.logits[0, index]) for index in classes}
    return Recorded(_sha256(prediction.images[0]), _sha256(prediction.partition.blocks[0][0]),
                    int(prediction.partition.counts[0]), logits)


def read_answers() -> Answers:
    """The answers that come with spit."""
    document = json.loads(files("spit.doctor").joinpath(FILE).read_text())
    return Answers(document["digests"], {
        name: {image: Recorded(one["pixels"], one["labels"], one["tokens"],
                               {int(index): value for index, value in one["logits"].items()})
               for image, one in images.items()} for name, images in document["answers"].items()})


def _sha256(values: Tensor) -> str:
    return hashlib.sha256(values.cpu().contiguous().numpy().tobytes()).hexdigest()
