"""``spit explain``: which pixels a prediction rests on, as pictures and numbers."""

import io
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text
from torch import Tensor

from spit import __version__
from spit.attribution import Lime, Method, MethodOptions
from spit.attribution.drawing import occlusion_rows, panel_row
from spit.attribution.targets import class_index
from spit.cli.classify import Naming, top_json, top_table
from spit.cli.console import Say, answers, print_json, shown
from spit.cli.inputs import Input, find_inputs, for_each
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.cli.outputs import write_about
from spit.data.crops import central_square
from spit.drawing import Tile, draw_panel, encode_png
from spit.options import Options, option
from spit.predictor import Prediction, Predictor


@dataclass(frozen=True)
class Asking(Options):
    """What is explained."""

    target: str | None = option(
        None, "Class to explain, by index or name as spit classify prints it (default: the predicted class); flow, "
              "rollout and random are the same for any class", metavar="CLASS")


@dataclass
class Explained:
    """A model, the methods that explain it, the class asked for, and the default methods that are not available."""

    predictor: Predictor
    methods: list[Method]
    target: int | None
    left_out: dict[str, str] = field(default_factory=dict)


@dataclass
class Pages:
    """What becomes of one image: rows of two pictures, maps, and a document for each model."""

    panel: list[list[Tile]] = field(default_factory=list)
    strips: list[list[Tile]] = field(default_factory=list)
    maps: dict[str, bytes] = field(default_factory=dict)
    documents: list[dict[str, Any]] = field(default_factory=list)


def explain(images: Images, methods: MethodOptions, asking: Asking, models: Models, tokenizer: TokenizerChoice,
            naming: Naming, reading: Reading, output: Output, running: Running) -> int:
    """Show which pixels a prediction rests on.

    For cat.jpg: cat.explain.png (image, tokens and a map for each method, a row for each model), cat.occlusion.png
    (without the most important pixels, and with nothing but them, by the first method), cat.METHOD.npy (each map,
    float32) and cat.explain.json (classes, scores). The model sees the central square, as in classification. Without
    --method: flow, prototype (if the model has prototypes) and lime (if captum is installed; 256 passes, by far the
    slowest). An image that cannot be read is reported, the others go on, and the exit code is 2.
    """
    folder = output.output
    inputs = find_inputs(images, folder)
    given = [item.path for item in inputs]
    explained = []
    for predictor in models.load_classifiers(running.device, tokenizer):
        left_out: dict[str, str] = {}
        target = None if asking.target is None else class_index(predictor.class_names, asking.target)
        explained.append(Explained(predictor, methods.methods_for(predictor.model, left_out), target, left_out))

    def work(item: Input, say: Say) -> dict[str, Any]:
        contents, document = _describe(item, reading.load(item.path), explained, naming.top, say)
        write_about(folder / f"{item.stem}.explain.json", document,
                    {folder / name: data for name, data in contents.items()}, given)
        return document

    outcome = for_each(inputs, "Explaining", work)
    if running.as_json:
        print_json({"output": str(folder), "images": outcome.answers, "failed": outcome.failures()})
    else:
        for document in outcome.answers:
            _show(document, folder)
        for own in explained:
            for name, reason in own.left_out.items():
                answers().print(Text(f"{own.predictor.name}: {name} is left out; {reason}"))
    return outcome.code


def _describe(item: Input, image: Tensor, explained: list[Explained], top: int,
              say: Say) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Every picture and map to write about one image, by its path below the output folder, and its document."""
    size = explained[0].predictor.size
    pages = Pages()
    for own in explained:
        doing = shown(item.path.name) + (f", {own.predictor.name}" if len(explained) > 1 else "")
        say(f"{doing}: tokens (the first run compiles)")
        prediction = own.predictor(central_square(image, size, own.predictor.model.config.eval_crop))
        _explain(pages, own, prediction, item, top, len(explained) > 1, doing, say)
    files = {"panel": f"{item.stem}.explain.png", "occlusion": f"{item.stem}.occlusion.png"}
    note = (f"Pixels in the order of {explained[0].methods[0].name}. Removed pixels get the mean colour; below, the "
            "probability before and after")
    contents = {**pages.maps, files["panel"]: encode_png(draw_panel(pages.panel, item.path.name)),
                files["occlusion"]: encode_png(draw_panel(pages.strips, item.path.name, note))}
    return contents, {"image": str(item.path), "size": size, "models": pages.documents, "files": files,
                      "spit": __version__}


def _explain(pages: Pages, own: Explained, prediction: Prediction, item: Input, top: int, several: bool, doing: str,
             say: Say) -> None:
    """Add what one model says about an image to its pages."""
    predictor = own.predictor
    names, chances = predictor.class_names, prediction.probabilities[0]
    seen = int(chances.argmax())
    target = seen if own.target is None else own.target
    maps = {}
    for method in own.methods:
        say(f"{doing}: {method.name}")
        if isinstance(method, Lime):
            of = f"of {method.samples} masks"
            method = replace(method, progress=lambda masks, of=of: say(f"{doing}: lime, {masks} {of}"))
        maps[method.name] = prediction.explain(method, target)[0]
    say(f"{doing}: occlusions and pictures")
    of_class = [method.name for method in own.methods if method.of_class]
    named = target if of_class else seen
    also = "" if named == seen else f"; seen as {names[seen]}, {float(chances[seen]):.1%}"
    detail = f"{names[named]}, {float(chances[named]):.1%}{also}"
    pages.panel.append(panel_row(prediction, maps, predictor.name, detail))
    before = f"{predictor.name}, {names[target]}" if several else names[target]
    pages.strips += occlusion_rows(prediction, next(iter(maps.values())), target,
                                   f"{before} {float(chances[target]):.1%}")
    files = {name: f"{item.stem}.{f'{predictor.name}.' if several else ''}{name}.npy" for name in maps}
    pages.maps |= {files[name]: _npy(values) for name, values in maps.items()}
    pages.documents.append({
        "model": predictor.name, "tokenizer": predictor.model.config.tokenizer,
        "tokens": int(prediction.partition.counts[0]), "top": top_json(prediction, top),
        "target": {"index": target, "name": names[target], "probability": float(chances[target])},
        "of_class": of_class, "maps": files, "left_out": own.left_out})


def _npy(values: Tensor) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values.cpu().numpy(), allow_pickle=False)
    return buffer.getvalue()


def _show(document: dict[str, Any], output: Path) -> None:
    console = answers()
    for part in document["models"]:
        about = f"{shown(document['image'])}, {part['model']} ({part['tokens']} tokens)"
        console.print(Text(f"{about}: {_subject(part)}", style="bold"))
        console.print(top_table(part["top"]))
    console.print(Text(f"The panel is {shown(output / document['files']['panel'])}", style="bold green"))


def _subject(part: dict[str, Any]) -> str:
    """What the maps explain: the class, and the methods that are the same for any class."""
    free = [name for name in part["maps"] if name not in part["of_class"]]
    said = [f"explains {part['target']['name']}, {part['target']['probability']:.1%}"] if part["of_class"] else []
    if free:
        said.append(f"{', '.join(free)} {'are' if len(free) > 1 else 'is'} the same for any class")
    return "; ".join(said)
