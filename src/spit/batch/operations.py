"""What is done with an image: a callable that holds a predictor and turns encoded images into rows."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from spit.answers.classify import Classify
from spit.answers.explain import Explain
from spit.answers.segment import Segment
from spit.attribution.options import MethodOptions
from spit.batch.arrow import pa
from spit.batch.options import Work
from spit.data.crops import central_pixels
from spit.data.images import decode
from spit.drawing import encode_labels, encode_png
from spit.errors import SpitError
from spit.parts import TOKENIZERS
from spit.predictor import Prediction, Predictor, resize
from spit.segmentation.head import head_for

Row = dict[str, Any]
ABOUT = [("key", pa.string()), ("sha256", pa.string())]
REJECTS = pa.schema([*ABOUT, ("error", pa.string())])
TOP = ("top", pa.list_(pa.struct([("index", pa.int32()), ("name", pa.string()), ("probability", pa.float32())])))


class Decoded(NamedTuple):
    """An image that could be read."""

    key: str
    sha256: str
    width: int
    height: int
    image: Tensor  # as the operation takes it
    seconds: float


class Rejected(NamedTuple):
    """An image that could not, and why."""

    key: str
    sha256: str | None
    error: str


class Operation:
    """A plain callable from a batch of encoded images to rows, for Ray, Spark, Dask, Daft or a loop.

    ``operation({"key": keys, "bytes": files})`` returns a dict of lists, one entry for each image in every list, with
    the columns of :attr:`schema` and ``error``, which is None where there is an answer.

    Args:
        predictor: the model.
        work: what to do.
        size: side of the square, or shorter side of whole images (default: the predictor's; whole images keep theirs).

    Example:
        >>> import io, spit
        >>> from PIL import Image
        >>> from spit.batch.operations import Operation
        >>> from spit.batch.options import Work
        >>> file = io.BytesIO()
        >>> Image.new("RGB", (40, 30), "red").save(file, "PNG")
        >>> operation = Operation(spit.load("spit_tiny_16", "cpu"), Work("embed"))
        >>> rows = operation({"key": ["red", "broken"], "bytes": [file.getvalue(), b"?"]})
        >>> rows["width"], len(rows["vector"][0]), rows["error"][1][:27]
        ([40, None], 192, 'broken: expected an image (')
    """

    def __init__(self, predictor: Predictor, work: Work = Work(), size: int | None = None) -> None:  # noqa: B008
        self.predictor, self.work, self.size = predictor, work, size
        self.question: Classify | Explain | Segment | None = None
        if work.op in ("classify", "explain"):
            predictor.expect_classes()
            self.question = Classify(work.top)
        if work.op == "explain":
            [method] = MethodOptions(method=(work.method or "relevance",)).methods_for(predictor)
            self.question = Explain(method)
        if work.op == "segment":
            self.question = Segment(method=work.method)
            self.predictor = self.question.joined(predictor)
        self.crop = work.op == "embed" if self.question is None else self.question.crop
        self.side = size or (predictor.size if self.crop else None)

    @property
    def schema(self) -> pa.Schema:
        """The columns of a row; see docs/batch.md."""
        special = {"tokenize": [("labels", pa.binary())], "classify": [TOP],
                   "embed": [("vector", pa.list_(pa.float16(), self.predictor.model.config.width))],
                   "explain": [TOP, ("map", pa.binary()), ("low", pa.float32()), ("high", pa.float32())],
                   "segment": [("mask", pa.struct([("size", pa.list_(pa.int32(), 2)), ("counts", pa.string())])),
                               ("foreground", pa.float32())]}
        return pa.schema([*ABOUT, ("width", pa.int32()), ("height", pa.int32()), ("tokens", pa.int32()),
                          *special[self.work.op], ("decode_seconds", pa.float32()), ("seconds", pa.float32())])

    def settings(self) -> dict[str, Any]:
        """Everything that a row depends on beside the image, as JSON has it."""
        model = self.predictor.model
        extra: Any = None
        if isinstance(self.question, Segment):
            head = head_for(self.predictor, self.question.method)
            extra = head and head.digest
        elif isinstance(self.question, Explain):
            extra = self.question.method.config()
        return {"work": self.work.to_dict(), "model": self.predictor.digest, "config": model.config.to_dict(),
                "tokenizer": {"name": TOKENIZERS.name_of(model.tokenizer), **(
                    model.tokenizer.config() if hasattr(model.tokenizer, "config") else {})},  # a function has none
                "size": self.side, "with": extra}

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """Rows of encoded images, ``{"key": …, "bytes": …}``, in their order."""
        read = [self.decode(str(key), data) for key, data in zip(batch["key"], batch["bytes"], strict=True)]
        answers = iter(self.answer([one for one in read if isinstance(one, Decoded)]))
        rows = [next(answers) if isinstance(one, Decoded) else one for one in read]
        return {name: [_field(row, name) for row in rows] for name in [*self.schema.names, "error"]}

    def decode(self, key: str, data: bytes) -> Decoded | Rejected:
        """Read an encoded image; safe in several threads."""
        start = time.perf_counter()
        data = bytes(data)
        sha256 = hashlib.sha256(data).hexdigest()
        try:
            pixels = decode(data, self.work.max_pixels)
            height, width = pixels.shape[:2]
            if self.crop:  # as Predictor.square, without torch, which would start threads of its own
                pixels = central_pixels(pixels, self.side or self.predictor.size,
                                        self.predictor.model.config.eval_crop)
            image = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))
            if self.work.op == "tokenize" and self.size is not None:
                image = resize(image, self.size)
        except (SpitError, ValueError, MemoryError) as error:
            return Rejected(key, sha256, _reason(key, error))
        return Decoded(key, sha256, width, height, image, time.perf_counter() - start)

    def answer(self, images: Sequence[Decoded]) -> list[Row | Rejected]:
        """A row for each image; an image that fails does so alone."""
        start = time.perf_counter()
        try:
            found = self._answer([one.image for one in images]) if images else []
        except torch.AcceleratorError:  # the GPU cannot be used in this process any more
            raise
        except Exception as error:  # whatever one image causes is its reason in the rejects, and no other's
            if len(images) == 1:
                return [Rejected(images[0].key, images[0].sha256, _reason(images[0].key, error))]
            return [row for one in images for row in self.answer([one])]
        seconds = (time.perf_counter() - start) / max(len(images), 1)
        return [{"key": one.key, "sha256": one.sha256, "width": one.width, "height": one.height, **row,
                 "decode_seconds": one.seconds, "seconds": seconds} for one, row in zip(images, found, strict=True)]

    def _answer(self, images: list[Tensor]) -> list[Row]:
        if self.work.op == "tokenize":
            partition = self.predictor.model.tokenizer([image.to(self.predictor.device) for image in images])
            return [{"tokens": count, "labels": encode_labels(partition[index].blocks[0][0])[0]}
                    for index, count in enumerate(partition.counts.tolist())]
        prediction = self.predictor(images, crop=False, size=self.side)  # squares come from decode
        rows: list[Row] = [{"tokens": count} for count in prediction.partition.counts.tolist()]
        for row, found in zip(rows, self._found(prediction), strict=True):
            row |= found
        return rows

    def _found(self, prediction: Prediction) -> list[Row]:
        if self.work.op == "embed":
            return [{"vector": vector} for vector in prediction.class_token.half().cpu().numpy()]
        if isinstance(self.question, Segment):
            answer = self.question.of(prediction)
            rows = [answer.to_dict(index) for index in range(len(answer))]
            return [{"mask": row["mask"], "foreground": row["foreground"]} for row in rows]
        tops = [{"top": [one.to_dict() for one in ranking]} for ranking in Classify(self.work.top).of(prediction)]
        if not isinstance(self.question, Explain):
            return tops
        return [{**top, **_picture(values)} for top, values in zip(tops, self.question.of(prediction), strict=True)]


def _picture(values: Tensor) -> Row:
    """A map as an 8-bit grey PNG and the values of its black and white."""
    low, high = float(values.min()), float(values.max())
    grey = (values.double() - low) * (255 / (high - low) if high > low else 0)
    return {"map": encode_png(Image.fromarray(grey.round().to(torch.uint8).cpu().numpy())), "low": low, "high": high}


def _field(row: Row | Rejected, name: str) -> Any:
    value = row.get(name) if isinstance(row, dict) else getattr(row, name, None)
    return value.tolist() if isinstance(value, np.ndarray) else value


def _reason(key: str, error: Exception) -> str:
    text = " ".join(str(error).split()).removeprefix("image bytes: ")
    named = isinstance(error, SpitError | ValueError) and text
    return f"{key}: {text}" if named else f"{key}: {type(error).__name__} {text}".rstrip()
