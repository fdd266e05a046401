"""Answers of a Prediction as JSON has them."""

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spit.answers.segment import Segment
from spit.attribution.lime import Lime
from spit.attribution.methods import Method, read_classes
from spit.attribution.token_rise import TokenRise
from spit.errors import WeightsError
from spit.interruption import may_stop
from spit.predictor import Prediction
from spit.segmentation.saliency import Segmentation
from spit.serve.errors import ApiError


def read_class(names: Sequence[str], target: int | str | None) -> int | None:
    """A class by index or name; ApiError if there is none."""
    if target is None:
        return None
    try:
        return int(read_classes(target, 1, names))
    except ValueError as error:
        raise ApiError("invalid_request", f"target: {str(error)[:300]}.") from None


def watched(method: Method, state: dict[str, int] | None = None) -> Method:
    """The method, with progress told to ``state`` and the time looked at, if it takes many passes."""
    if not isinstance(method, Lime | TokenRise):
        return method
    known = {} if state is None else state
    known.update(done=0, total=method.samples)

    def progress(passes: int) -> None:
        may_stop()
        known["done"] = min(passes, known["total"])

    return replace(method, progress=progress)


def segment(prediction: Prediction, question: Segment) -> Segmentation:
    """The salient object of each image; ApiError if a head is asked for and the model has none."""
    try:
        return question.of(prediction)
    except WeightsError:
        raise ApiError("method_unavailable", f"{question.method} needs a token head of this model; use cut.") from None


def scaled(values: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Values over their largest magnitude, which half floats keep, and that magnitude."""
    scale = float(np.abs(values).max(initial=0)) or 1.0
    return values / scale, scale


def array_json(values: NDArray[Any], scale: float = 1.0) -> dict[str, Any]:
    """An array as JSON: the value is ``scale`` times what ``data`` holds, row by row in little-endian numbers."""
    return {"shape": list(values.shape), "dtype": str(values.dtype), "scale": scale, "data": encode_bytes(values)}


def encode_bytes(values: NDArray[Any]) -> str:
    """An array as base64 of its bytes."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()
