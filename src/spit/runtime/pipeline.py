"""Runtime: an exported model that answers from image files, without torch."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Image as Picture

from spit.data.classes import Guess, printable_names
from spit.data.crops import central_pixels
from spit.data.images import ImageSource, decode, to_rgb
from spit.documents import read_json, reason
from spit.errors import MissingExtra, WeightsError
from spit.kernels import Array
from spit.runtime.features import Extractor, make_extractor
from spit.runtime.tokenizers import Regions, Tokenizer, make_tokenizer

FORMAT = 1
KEY = "spit"  # of the description in an ONNX file
EXTRACTOR = "interpolating"  # the φ of spit, by its name in a config
LARGEST = 2**14  # side of a square
SEEN = 2**18  # most pixels of a whole image, as for spit.load


@dataclass(frozen=True, eq=False)
class Answer:
    """What a model says about one image.

    Attributes:
        labels: the region of each pixel as the model saw the image.
        logits: of the classes; the class token if the model has no head.
        class_token: after the final norm.
        tokens: the others after the final norm, row v of region v: ``tokens[labels]`` is a dense feature map. None if
            the file was exported with ``--outputs classes``.
        names: of the classes.

    Shape:
        labels ``(H, W)`` int32, logits ``(num_classes,)``, class_token ``(D,)``, tokens ``(N, D)``, float32.
    """

    labels: Array
    logits: Array
    class_token: Array
    tokens: Array | None
    names: tuple[str, ...]

    def __repr__(self) -> str:
        height, width = self.labels.shape
        best = f"{self.top(1)[0].name}, {self.top(1)[0].probability:.1%}" if self.names else "no classes"
        return f"Answer({best}; {int(self.labels.max()) + 1} tokens of {height} × {width} pixels)"

    @property
    def probabilities(self) -> Array:
        """Softmax of the logits."""
        powers = np.exp(self.logits - self.logits.max())
        shares: Array = powers / powers.sum()
        return shares

    def top(self, count: int = 5) -> list[Guess]:
        """The likeliest classes of the image, ``[Guess(name, probability), …]``.

        A flat list, since an Answer is about one image; ``top`` of a :class:`spit.Prediction` has such a list for each
        image, and ``prediction.top(5)[0]`` is what this returns.
        """
        if not self.names:
            raise ValueError("expected a model that knows classes, got one without a head; export one that has it")
        shares = self.probabilities
        order = np.argsort(-shares, kind="stable")[:count]
        return [Guess(self.names[index], float(shares[index])) for index in order]


def load(path: str | os.PathLike[str], threads: int | None = None) -> "Runtime":
    """Load what ``spit export --format onnx`` wrote.

    Args:
        path: the ``.onnx`` file.
        threads: of onnxruntime (default: one for each core).

    Raises:
        WeightsError: no such file, a damaged one, or one that spit did not export.
        MissingExtra: onnxruntime is not installed.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtra("onnxruntime", "runtime", "spit.runtime") from error
    if not Path(path).is_file():
        raise WeightsError(f"no file {path}; make one with: spit export MODEL --format onnx --output FILE")
    options = onnxruntime.SessionOptions()
    if threads is not None:
        options.intra_op_num_threads = threads
    try:
        session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no common base but Exception
        raise WeightsError(f"{path} is not an ONNX file that onnxruntime {onnxruntime.__version__} reads "
                           f"({str(error).strip().partition(chr(10))[0]}); export it again") from error
    description = read_description(session.get_modelmeta().custom_metadata_map.get(KEY), str(path))
    try:
        return Runtime(session, description)
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from error


def read_description(text: str | None, source: str) -> dict[str, Any]:
    """What an exported file says about its model."""
    if text is None:
        raise WeightsError(f"{source} was not exported by spit: it has no metadata {KEY!r}; make one with spit export")
    try:
        description = read_json(text)
        if description["format"] != FORMAT:
            raise ValueError(f"format {description['format']!r}, this version of spit reads {FORMAT}")
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(f"{source}: its metadata is not what spit export writes: {reason(error)}") from error
    return dict(description)


class Runtime:
    """A model on onnxruntime, with its tokenizer and features on numba.

    Args:
        session: an ``onnxruntime.InferenceSession`` of the exported graph.
        description: of the model, from the file's metadata.
    """

    def __init__(self, session: Any, description: Mapping[str, Any]) -> None:
        self.session = session
        self.description = dict(description)
        try:
            size, crop = description["size"], description["crop"]
            self.tokenizer, self.extractor = make_parts(description)
            if not isinstance(size, int) or not 1 <= size <= LARGEST or not (crop is None or 0 < crop <= 1):
                raise ValueError(f"size {size!r} and crop {crop!r}")
            self.class_names = printable_names(description["class_names"], description["num_classes"])
        except (KeyError, TypeError) as error:
            raise WeightsError(f"the metadata of the file is not what spit export writes: {reason(error)}") from error
        except ValueError as error:
            raise WeightsError(str(error)) from error
        self.size, self.crop = size, crop

    def __call__(self, image: ImageSource | Picture | Array, *, crop: bool = True) -> Answer:
        """Classify one image; for several, call it for each: ``[runtime(path).top(1)[0] for path in paths]``.

        Args:
            image: a path, the bytes of a file, a PIL image, or an ``(H, W)`` or ``(H, W, 3)`` uint8 array. It is not
                modified.
            crop: resize the image and take its central square, as classifiers are evaluated; False takes the whole
                image, of up to 512 × 512 pixels.
        """
        return self.classify(*self.tokenize(self.read(image, crop)))

    def read(self, image: ImageSource | Picture | Array, crop: bool = True) -> Array:
        """An image as the model sees it, ``(3, H, W)`` uint8 and contiguous; see :meth:`__call__`."""
        pixels = _pixels(image)
        if crop:
            pixels = central_pixels(pixels, self.size, self.crop)
        elif pixels[:, :, 0].size > SEEN:
            raise ValueError(f"expected at most {SEEN:,} pixels with crop=False, got {pixels.shape[0]} × "
                             f"{pixels.shape[1]}; resize the image first")
        return np.ascontiguousarray(pixels.transpose(2, 0, 1))

    def tokenize(self, image: Array) -> tuple[Regions, Array]:
        """τ and φ: the regions of what :meth:`read` returned, and their features.

        Shape:
            ``(3, H, W)`` uint8, contiguous, to features ``(N, F)`` float32.
        """
        found = self.tokenizer(image)
        return found, self.extractor(image, found)

    def classify(self, found: Regions, given: Array) -> Answer:
        """γ, f and h of what :meth:`tokenize` returned."""
        logits, class_token, *tokens = self.session.run(None, {"features": given})
        own = tokens[0] if tokens else None
        return Answer(found.labels, logits[0], class_token[0], own, self.class_names)

    def __repr__(self) -> str:
        return (f"Runtime({self.description['tokenizer']} tokens, {self.size} px, "
                f"{self.description['precision']}, digest {self.description['digest'][:12]})")


def make_parts(description: Mapping[str, Any]) -> tuple[Tokenizer, Extractor]:
    """τ and φ; ValueError if they are not among those that need no torch."""
    if description["input"] != "tokens":
        raise ValueError("expected a graph that takes the features of tokens, got one of pixels, from an earlier "
                         "version of spit; export the model again")
    tokenizer = make_tokenizer(description["tokenizer"], description["tokenizer_options"])
    name = description.get("extractor", EXTRACTOR)
    if name != EXTRACTOR:
        raise ValueError(f"expected the features of spit, got {name!r}; spit.runtime has no features of your own: use "
                         "spit.load, with torch")
    return tokenizer, make_extractor(description["features"])


def _pixels(image: ImageSource | Picture | Array) -> Array:
    """An image of any kind as ``(H, W, 3)`` uint8."""
    if isinstance(image, Picture):
        return to_rgb(image)
    if isinstance(image, list | tuple):
        raise TypeError(f"expected one image, got a {type(image).__name__}; call the runtime for each of them")
    if not isinstance(image, np.ndarray):
        return decode(image)
    colors = image[:, :, None] if image.ndim == 2 else image
    if image.dtype != np.uint8 or colors.ndim != 3 or colors.shape[2] not in (1, 3) or colors.size == 0:
        raise ValueError(f"expected an (H, W) or (H, W, 3) uint8 array, got {image.dtype} of shape {image.shape}; "
                         "floats in [0, 1] become 8 bits by np.rint(255 * x).astype(np.uint8)")
    return np.broadcast_to(colors, (*colors.shape[:2], 3))
