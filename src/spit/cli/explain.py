"""``spit explain``: which pixels a prediction rests on, as pictures and numbers."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from spit import __version__
from spit.attribution import Lime, Method, MethodOptions, PrototypeProjection, TokenRise
from spit.attribution.drawing import PAPER_PROTOTYPE, captions_of, occlusion_rows, panel_row
from spit.attribution.methods import METHODS, class_index
from spit.cli.claims import Shared
from spit.cli.classify import Naming, show_top, square, top_json
from spit.cli.companions import Sharing
from spit.cli.console import Say, show, shown, tell
from spit.cli.inputs import Input, answer_each, find_inputs
from spit.cli.kept import kept_maps, of_methods, with_kept
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.drawing import Tile, draw_panel, encode_png
from spit.options import Options, option
from spit.predictor import SEEN, Prediction, Predictor, at_size, resize, shorter_side
from spit.tokens import plural

ADVICE = ("On average relevance is the most faithful of the fast methods; the others answer other questions "
          "(docs/attribution.md)")
ABREAST = 3  # tiles in a row of one model's panel
UNLIKELY = 0.01  # probability below which a line says that a class may not be in the image


@dataclass(frozen=True)
class Asking(Options):
    """What is explained."""

    target: str | None = option(
        None, "Class to explain, by index or name as spit classify prints it (default: the predicted class); flow, "
              "rollout and random are the same for any class", metavar="CLASS")
    whole: bool = option(False, "Explain the whole image, as spit segment sees it, in place of the central square that "
                                "spit classify sees; NPY files then have the image's own size")


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


def explain(images: Images, methods: MethodOptions, asking: Asking, models: Models, tokenizer: TokenizerChoice,
            naming: Naming, reading: Reading, sharing: Sharing, output: Output, running: Running) -> int:
    """Show which pixels a prediction rests on.

    For cat.jpg: cat.explain.png (image, tokens and a map for each method; of several models, a row for each),
    cat.occlusion.png (without the most important pixels, and with nothing but them, by the first method),
    cat.METHOD.npy (each map, float32) and cat.explain.json (classes, scores). The model sees the central square, as in
    classification, or with --whole the whole image, of up to 512 × 512 pixels. Without --method: relevance, the most
    faithful of the fast methods, prototype (if the model has prototypes) and flow. token_rise and
    lime evaluate the model up to --samples times, which takes seconds. Compare values within one
    map only, not between maps, methods or images; a map's colours end at its 5th and 95th percentile. A second run
    processes all images again and replaces their files, but keeps maps of methods that it does not compute. A folder
    that holds such maps, or other images' files, made with other options, is refused. An image that cannot be read is
    reported, the others go on, and the exit code is 2.
    """
    inputs = find_inputs(images, output.output)
    explained = []
    predictors = list(models.load_classifiers(running.device, tokenizer))
    several = len(predictors) > 1
    methods.check_prototypes(predictors)
    for predictor in predictors:
        left_out: dict[str, str] = {}
        target = None if asking.target is None else _target(predictor.class_names, asking.target)
        explained.append(Explained(predictor, methods.methods_for(predictor.model, left_out), target, left_out,
                                   asking.whole, models.size, several))
    squares = {one.name: square(one) for one in predictors}
    shared = Shared(inputs, "explain.json", {"verb": "explain", "models": {own.predictor.name: {
        "model": own.predictor.digest, "config": own.predictor.model.config.to_dict(),
        "whole": own.whole, "size": own.size,
        "methods": {method.name: method.config() for method in own.methods},
        "target": None if own.target is None else f"{own.target} {own.predictor.class_names[own.target]}"}
        for own in explained}, "spit": __version__}, apart=of_methods)
    ends = [own.end(method.name) for own in explained for method in own.methods]
    for item in inputs:
        kept_maps(shared, item, ends)  # refuses before the work
    free = [method.name for method in explained[0].methods if not method.of_class]
    if free and asking.target is not None and methods.names:
        tell(f"{_same(free)}; --target has no effect on {'them' if len(free) > 1 else 'it'}")
    note = (f"Pixels in the order of {explained[0].methods[0].name}. Removed pixels get the mean colour; below, the "
            "probability before and after")

    def work(item: Input, say: Say) -> dict[str, Any]:
        kept = kept_maps(shared, item, ends)
        image = reading.load(item.path)
        pages = [_explain(own, item, image, naming.top, kept.get(own.predictor.name, {}), say) for own in explained]
        title = "" if several else shown(models.model[0].rstrip("/"))  # of several, each photo's caption has its model
        rows = [page.panel for page in pages] if several else _wrapped(pages[0].panel)
        panel = draw_panel(rows, title, "" if methods.names else ADVICE)
        strips = draw_panel([row for page in pages for row in page.strips], item.path.name, note)
        about = {"size": None if asking.whole else explained[0].predictor.size,
                 "models": [page.document for page in pages], **shared.about_run(item)}
        return item.write("explain.json", {**about, "settings": with_kept(shared.settings, kept)}, {
            "panel": ("explain.png", encode_png(panel)), "occlusion": ("occlusion.png", encode_png(strips)),
            **{end: (end, _npy(values)) for page in pages for end, values in page.maps.items()}},
            [own.end(name) for own in explained for name in kept.get(own.predictor.name, ())])

    def show_all(documents: list[dict[str, Any]]) -> None:
        for document in documents:
            for part in document["models"]:
                seen = "whole image" if asking.whole else squares[part["model"]]
                about = f"{shown(document['image'])}, {part['model']} ({seen}, {plural(part['tokens'], 'token')})"
                show(f"{about}: {_subject(part, asking.target is not None)}", "bold")
                show_top(part["top"])
                if {*part["of_class"]} - {*part["kept"]} and part["target"]["probability"] < UNLIKELY:
                    show(f"{part['target']['name']} is unlikely: the map compares pixels with each other, and does not "
                         "say that the class is in the image")
            show(f"The panel is {shown(output.output / document['files']['panel'])}", "bold green")
        show(f"{len(ends) + 3} files for each image are in {shown(output.output)}: panel, occlusions, maps (NPY) and "
             "explain.json")
        kept = dict.fromkeys(name for document in documents for part in document["models"] for name in part["kept"])
        if kept:
            show(f"Maps kept from earlier runs: {', '.join(kept)}")
        for own in explained:
            for name, reason in own.left_out.items():
                show(f"{own.predictor.name}: {name} is left out; {reason}")

    return answer_each(inputs, "Explaining", work, show_all, running.as_json, shared, sharing.workers,
                       output=str(output.output))


def _wrapped(tiles: list[Tile]) -> list[list[Tile]]:
    """Tiles in rows of about equal length, at most ``ABREAST`` in each."""
    length = ceil(len(tiles) / ceil(len(tiles) / ABREAST))
    return [tiles[first : first + length] for first in range(0, len(tiles), length)]


def _target(names: Sequence[str], given: str) -> int:
    """The index of a class; if there is none, the error says where to find names."""
    try:
        return class_index(names, given)
    except ValueError as error:
        raise ValueError(f"{error} (spit classify --top 20 lists names that fit your image)") from None


def _explain(own: Explained, item: Input, image: Tensor, top: int, kept: dict[str, Any], say: Say) -> Page:
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
    files = {name: item.name(own.end(name)) for name in (*maps, *kept)}
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
         "tokens": int(prediction.partition.counts[0]), "top": top_json(prediction, top),
         "target": {"index": target, "name": names[target], "probability": float(chances[target])},
         "of_class": [name for name, method in METHODS.items() if method.of_class and name in files],
         "maps": files, "kept": [*kept], "left_out": own.left_out})


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
    return prediction.explain(method, target)[0]


def _npy(values: Tensor) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values.cpu().numpy(), allow_pickle=False)
    return buffer.getvalue()


def _subject(part: dict[str, Any], asked: bool) -> str:
    """What the maps explain: the class, and if one was asked for, the methods that are the same for any class."""
    own = [name for name in part["maps"] if name not in part["kept"]]
    free = [name for name in own if name not in part["of_class"]]
    said = [f"explains {part['target']['name']}, {part['target']['probability']:.1%}"] if free != own else []
    if free and (asked or not said):
        said.append(_same(free))
    return "; ".join(said)


def _same(names: Sequence[str]) -> str:
    """That the maps of some methods do not depend on the class."""
    several = f"{', '.join(names[:-1])} and {names[-1]} are" if len(names) > 1 else f"{names[0]} is"
    return f"{several} the same for any class"
