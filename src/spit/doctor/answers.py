"""Recorded answers of the default model, which ``spit doctor`` compares with those of this machine.

``python -m spit.doctor.answers`` records them again, after other weights or other preprocessing.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from spit.bench.photos import sample_photos
from spit.predictor import Predictor, load

FILE = Path(__file__).with_name("answers.json")
MODEL = "spit_tiny_16"
SAMPLES = ("astronaut.png", "chelsea.png", "coffee.png")
TOP = 5
TOLERANCE = 2e-3  # of logits: other processors sum in other orders


def answer_faults() -> Iterator[str]:
    """One line for each image whose answer differs from the recorded one; MissingExtra without scikit-image."""
    recorded, paths = json.loads(FILE.read_text()), _sample_paths()
    predictor = load(MODEL, "cpu")
    if predictor.digest != recorded["digest"]:
        yield f"the weights of {MODEL} are not those that answers were recorded with; install spit again"
        return
    for path in paths:
        difference = compare(answer(predictor, path), recorded["answers"][path.name])
        if difference:
            yield f"{MODEL} on {path.name}: {difference}"


def answer(predictor: Predictor, path: Path) -> dict[str, Any]:
    """Digests of the pixels that a model saw and of their regions, the number of these, and the largest logits."""
    prediction = predictor(path)
    classes = prediction.top_classes(TOP)[0].tolist()
    return {"pixels": _sha256(prediction.images[0]), "labels": _sha256(prediction.partition.blocks[0][0]),
            "tokens": int(prediction.partition.counts[0]),
            "logits": {str(index): float(prediction.logits[0, index]) for index in classes}}


def compare(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """The first difference between two answers; empty if there is none."""
    if found["pixels"] != expected["pixels"]:
        return "the resized image differs from the recorded one; another version of Pillow resizes in another way"
    if found["labels"] != expected["labels"]:
        return (f"the partition differs from the recorded one, with {found['tokens']} regions for "
                f"{expected['tokens']}; spit bench --check compares the backends")
    logits, wanted = found["logits"], expected["logits"]
    if logits.keys() != wanted.keys() or not all(abs(logits[key] - wanted[key]) <= TOLERANCE for key in wanted):
        return f"expected logits {_short(wanted)} within {TOLERANCE:g}, got {_short(logits)}"
    return ""


def _short(logits: dict[str, float]) -> str:
    return ", ".join(f"{index}: {value:.4f}" for index, value in logits.items())


def _sample_paths() -> list[Path]:
    return sample_photos(list(SAMPLES), "demo", "the sample images of spit doctor")


def _sha256(values: Tensor) -> str:
    return hashlib.sha256(values.cpu().contiguous().numpy().tobytes()).hexdigest()


if __name__ == "__main__":
    predictor = load(MODEL, "cpu")
    answers = {path.name: answer(predictor, path) for path in _sample_paths()}
    FILE.write_text(json.dumps({"digest": predictor.digest, "answers": answers}, indent=1) + "\n")
