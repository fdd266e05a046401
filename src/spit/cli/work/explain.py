"""``spit explain`` for one image."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from spit.answers.classify import Classify
from spit.answers.explain import Explain
from spit.attribution.drawing import PAPER_PROTOTYPE, captions_of, occlusion_rows, panel_row
from spit.attribution.lime import Lime
from spit.attribution.methods import METHODS, Method
from spit.attribution.prototypes import PrototypeProjection
from spit.attribution.token_rise import TokenRise
from spit.cli.console import Say, shown
from spit.cli.inputs import Document, Input
from spit.cli.options import Reading
from spit.cli.results import Results
from spit.drawing import Tile, draw_panel, encode_png
from spit.predictor import SEEN, Prediction, Predictor, at_size, resize, shorter_side

ADVICE = ("On average relevance is the most faithful of the fast methods; the others answer other questions "
          "(docs/attribution.md)")
ABREAST = 3  # tiles in a row of one model's panel
UNLIKELY = 0.01  # probability below which a line says that a class may not be in the image


class Explained(NamedTuple):
    """A model, the methods that explain it, the class asked for, and the default methods that are not available.

    ``whole``: whether it sees the whole image, with the shorter side ``size`` if one is given. ``several``: whether
    other models explain the same images.
    """

    predictor: Predictor
    methods: list[Method]
    target: int | None
    left_out: dict[str, str]
    whole: bool
    size: int | None
    several: bool

    def end(self, method: str) -> str:
        """The end of the name of a map's file."""
        return f"{self.predictor.name}.{method}.npy" if self.several else f"{method}.npy"


class Page(NamedTuple):
    """What one model says about an image: rows of two pictures, maps by the end of their file's name, a document."""

    panel: list[Tile]
    strips: list[list[Tile]]
    maps: dict[str, Tensor]
    document: dict[str, Any]


@dataclass(frozen=True)
class ExplainWork:
    """Explains an image by every model and method, and writes its files.

    Args:
        advice: whether the panel says which map is the most faithful.
    """

    explained: Sequence[Explained]
    title: str
    advice: bool
    top: int
    reading: Reading
    results: Results

    def __call__(self, item: Input, say: Say) -> Document:
        first = self.explained[0]
        image = self.reading.load(item.path)
        pages = [explain_image(own, item, image, self.top, say) for own in self.explained]
        rows = [page.panel for page in pages] if first.several else wrapped(pages[0].panel)
        panel = draw_panel(rows, self.title, ADVICE if self.advice else "")
        note = (f"Pixels in the order of {first.methods[0].name}. Removed pixels get the mean colour; below, the "
                "probability before and after")
        strips = draw_panel([row for page in pages for row in page.strips], item.path.name, note)
        return self.results.write(item, {
            "size": None if first.whole else first.predictor.size, "models": [page.document for page in pages]}, {
            "panel": ("explain.png", encode_png(panel)), "occlusion": ("occlusion.png", encode_png(strips)),
            **{end: (end, npy(values)) for page in pages for end, values in page.maps.items()}})


def wrapped(tiles: list[Tile]) -> list[list[Tile]]:
    """Tiles in rows of about equal length, at most ``ABREAST`` in each."""
    length = ceil(len(tiles) / ceil(len(tiles) / ABREAST))
    return [tiles[first : first + length] for first in range(0, len(tiles), length)]


def explain_image(own: Explained, item: Input, image: Tensor, top: int, say: Say) -> Page:
    predictor, file = own.predictor, shown(item.path.name)

    def doing(step: str) -> None:
        say(f"Explaining {file}{f', {predictor.name}' if own.several else ''}: {step}")

    doing("cutting it into tokens (the first run compiles)")
    prediction = _look(own, image)
    names, chances = predictor.class_names, prediction.probabilities[0]
    seen = int(chances.argmax())
    target = seen if own.target is None else own.target
    maps = {method.name: _map(prediction, method, target, doing) for method in own.methods}
    doing("drawing, with occlusions")
    named = target if any(method.of_class for method in own.methods) else seen
    also = "" if named == seen else f"; predicted: {names[seen]}, {float(chances[seen]):.1%}"
    before = f"{predictor.name}, {names[target]}" if own.several else names[target]
    files = {name: item.name(own.end(name)) for name in maps}
    doubt = " (unlikely)" if float(chances[target]) < UNLIKELY else ""
    captions = captions_of(names[target] + doubt) | {method.name: PAPER_PROTOTYPE for method in own.methods
                           if isinstance(method, PrototypeProjection) and method.form == "paper"}
    return Page(
        panel_row(prediction, maps, f"{file}, {predictor.name}" if own.several else file,
                  f"{names[named]}, {float(chances[named]):.1%}{also}", captions),
        occlusion_rows(prediction, next(iter(maps.values())), target, f"{before} {float(chances[target]):.1%}"),
        {own.end(name): at_size(values, image.shape[1:]) if own.whole else values for name, values in maps.items()},
        {"model": predictor.name, "seen": list(prediction.images[0].shape[:0:-1]),
         "tokenizer": predictor.model.config.tokenizer,
         "tokens": int(prediction.partition.counts[0]),
         "top": [one.to_dict() for one in Classify(top).of(prediction)[0]],
         "target": {"index": target, "name": names[target], "probability": float(chances[target])},
         "of_class": [name for name, method in METHODS.items() if method.of_class and name in files],
         "maps": files, "left_out": own.left_out})


def _look(own: Explained, image: Tensor) -> Prediction:
    """What the model sees of an image; maps have that size, so that pictures can show them side by side."""
    if not own.whole:
        return own.predictor(image, crop=True)
    side = own.size or shorter_side(image)
    most = int(min(image.shape[1:]) * (SEEN / image[0].numel()) ** 0.5)  # where occlusions are not reduced once more
    if own.size is not None and own.size > most:
        raise ValueError(f"expected --size of at most {most}, 512 × 512 pixels of this image, got {own.size}")
    seen = image if side is None else resize(image, side)
    return own.predictor(seen, crop=False, size=min(seen.shape[1:]))


def _map(prediction: Prediction, method: Method, target: int, say: Say) -> Tensor:
    say(f"map by {method.name}")
    if isinstance(method, Lime | TokenRise):
        name, samples = method.name, method.samples
        method = replace(method, progress=lambda passes: say(f"map by {name}, {passes} passes of at most {samples}"))
    return Explain(method, target).of(prediction)[0]


def npy(values: Tensor) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values.cpu().numpy(), allow_pickle=False)
    return buffer.getvalue()
