"""``spit explain``: which pixels a prediction rests on, as pictures and numbers."""

import io
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from spit.attribution import Lime, Method, MethodOptions, PrototypeProjection
from spit.attribution.drawing import CAPTIONS, PAPER_PROTOTYPE, occlusion_rows, panel_row
from spit.attribution.methods import class_index
from spit.attribution.removal import TokenRemoval
from spit.cli.classify import Naming, show_top, top_json
from spit.cli.console import Say, show, shown
from spit.cli.inputs import Input, answer_each, find_inputs
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.drawing import Tile, draw_panel, encode_png
from spit.options import Options, option
from spit.predictor import Prediction, Predictor


@dataclass(frozen=True)
class Asking(Options):
    """What is explained."""

    target: str | None = option(
        None, "Class to explain, by index or name as spit classify prints it (default: the predicted class); flow, "
              "rollout and random are the same for any class", metavar="CLASS")


class Explained(NamedTuple):
    """A model, the methods that explain it, the class asked for, and the default methods that are not available."""

    predictor: Predictor
    methods: list[Method]
    target: int | None
    left_out: dict[str, str]


class Page(NamedTuple):
    """What one model says about an image: rows of two pictures, maps by the end of their file's name, a document."""

    panel: list[Tile]
    strips: list[list[Tile]]
    maps: dict[str, Tensor]
    document: dict[str, Any]


def explain(images: Images, methods: MethodOptions, asking: Asking, models: Models, tokenizer: TokenizerChoice,
            naming: Naming, reading: Reading, output: Output, running: Running) -> int:
    """Show which pixels a prediction rests on.

    For cat.jpg: cat.explain.png (image, tokens and a map for each method, a row for each model), cat.occlusion.png
    (without the most important pixels, and with nothing but them, by the first method), cat.METHOD.npy (each map,
    float32) and cat.explain.json (classes, scores). The model sees the central square, as in classification. Without
    --method: relevance, prototype (if the model has prototypes) and flow. token_rise, token_shapley, token_occlusion
    and lime ask the model --samples times, which takes seconds. An image that cannot be read is reported, the others go
    on, and the exit code is 2.
    """
    inputs = find_inputs(images, output.output)
    explained = []
    predictors = list(models.load_classifiers(running.device, tokenizer))
    methods.check_prototypes(predictors)
    for predictor in predictors:
        left_out: dict[str, str] = {}
        target = None if asking.target is None else class_index(predictor.class_names, asking.target)
        explained.append(Explained(predictor, methods.methods_for(predictor.model, left_out), target, left_out))
    several = len(explained) > 1
    note = (f"Pixels in the order of {explained[0].methods[0].name}. Removed pixels get the mean colour; below, the "
            "probability before and after")

    def work(item: Input, say: Say) -> dict[str, Any]:
        image = reading.load(item.path)
        pages = [_explain(own, item, image, naming.top, several, say) for own in explained]
        panel = draw_panel([page.panel for page in pages], item.path.name)
        strips = draw_panel([row for page in pages for row in page.strips], item.path.name, note)
        return item.write("explain.json", {"size": explained[0].predictor.size,
                                           "models": [page.document for page in pages]}, {
            "panel": ("explain.png", encode_png(panel)), "occlusion": ("occlusion.png", encode_png(strips)),
            **{file: (file, _npy(values)) for page in pages for file, values in page.maps.items()}})

    def show_all(documents: list[dict[str, Any]]) -> None:
        for document in documents:
            for part in document["models"]:
                about = f"{shown(document['image'])}, {part['model']} ({part['tokens']} tokens)"
                show(f"{about}: {_subject(part)}", "bold")
                show_top(part["top"])
            show(f"The panel is {shown(output.output / document['files']['panel'])}", "bold green")
        for own in explained:
            for name, reason in own.left_out.items():
                show(f"{own.predictor.name}: {name} is left out; {reason}")

    return answer_each(inputs, "Explaining", work, show_all, running.as_json, output=str(output.output))


def _explain(own: Explained, item: Input, image: Tensor, top: int, several: bool, say: Say) -> Page:
    predictor = own.predictor

    def doing(step: str) -> None:
        say(f"{shown(item.path.name)}{f', {predictor.name}' if several else ''}: {step}")

    doing("tokens (the first run compiles)")
    prediction = predictor(image, crop=True)
    names, chances = predictor.class_names, prediction.probabilities[0]
    seen = int(chances.argmax())
    target = seen if own.target is None else own.target
    maps = {method.name: _map(prediction, method, target, doing) for method in own.methods}
    doing("occlusions and pictures")
    of_class = [method.name for method in own.methods if method.of_class]
    named = target if of_class else seen
    also = "" if named == seen else f"; seen as {names[seen]}, {float(chances[seen]):.1%}"
    before = f"{predictor.name}, {names[target]}" if several else names[target]
    files = {name: f"{f'{predictor.name}.' if several else ''}{name}.npy" for name in maps}
    captions = CAPTIONS | {method.name: PAPER_PROTOTYPE for method in own.methods
                           if isinstance(method, PrototypeProjection) and method.form == "paper"}
    return Page(
        panel_row(prediction, maps, predictor.name, f"{names[named]}, {float(chances[named]):.1%}{also}", captions),
        occlusion_rows(prediction, next(iter(maps.values())), target, f"{before} {float(chances[target]):.1%}"),
        {files[name]: values for name, values in maps.items()},
        {"model": predictor.name, "tokenizer": predictor.model.config.tokenizer,
         "tokens": int(prediction.partition.counts[0]), "top": top_json(prediction, top),
         "target": {"index": target, "name": names[target], "probability": float(chances[target])},
         "of_class": of_class, "maps": {name: item.name(file) for name, file in files.items()},
         "left_out": own.left_out})


def _map(prediction: Prediction, method: Method, target: int, say: Say) -> Tensor:
    say(method.name)
    if isinstance(method, Lime | TokenRemoval):
        name, samples = method.name, method.samples
        method = replace(method, progress=lambda passes: say(f"{name}, {passes} passes of at most {samples}"))
    return prediction.explain(method, target)[0]


def _npy(values: Tensor) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values.cpu().numpy(), allow_pickle=False)
    return buffer.getvalue()


def _subject(part: dict[str, Any]) -> str:
    """What the maps explain: the class, and the methods that are the same for any class."""
    free = [name for name in part["maps"] if name not in part["of_class"]]
    said = [f"explains {part['target']['name']}, {part['target']['probability']:.1%}"] if part["of_class"] else []
    if free:
        said.append(f"{', '.join(free)} {'are' if len(free) > 1 else 'is'} the same for any class")
    return "; ".join(said)
