"""``spit explain``: which pixels a prediction rests on, as pictures and numbers."""

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from spit.cli.classify import Top, guess_table
from spit.cli.console import Say, answers, print_json, shown, waiting
from spit.cli.evaluate_faithfulness import PrototypeFiles, Samples
from spit.cli.inputs import Input, find_inputs, for_each
from spit.cli.options import (
    DEFAULT_MODEL,
    AsJson,
    Device,
    Images,
    OutputFolder,
    OwnSize,
    Reading,
    TokenizerOptions,
    choose_device,
    listed,
)
from spit.cli.outputs import write_about

if TYPE_CHECKING:
    from spit.attribution import Method
    from spit.model import SpitModel

Methods = Annotated[list[str] | None, typer.Option(
    "--method", "--methods", metavar="NAME", show_default=False,
    help="flow, rollout, prototype, lime, relevance or random; several with commas between, or one by one; the "
         "occlusion strip is by the first. Unless told, those of the paper's Fig. 1 that can be had here: flow, "
         "prototype (where the model has prototypes) and lime (where captum is installed).")]
Sources = Annotated[list[str] | None, typer.Option(
    "--weights", metavar="PATH|HUB_ID", show_default=False,
    help="A folder that spit.save_model wrote, a Hugging Face hub id, or a ViT in timm's names (.safetensors or .pth); "
         "may be given several times, a row of the panel each. The checkpoint that comes with spit unless told.")]
Names = Annotated[list[str] | None, typer.Option(
    "--model", metavar="NAME", show_default=False,
    help="A model whose weights come with spit, spit_tiny_16 say; may be given several times.")]
TargetClass = Annotated[str | None, typer.Option(
    "--target", metavar="CLASS", show_default=False,
    help="The class to explain, by its index or its name, as spit classify gives it; the predicted one unless told. "
         "flow, rollout and random are the same for any class.")]


@dataclass(frozen=True)
class Explained:
    """A model with its name, the methods it is explained by, and why others are left out."""

    name: str
    model: "SpitModel"
    methods: "list[Method]"
    left_out: dict[str, str]


def explain(images: Images, tokenizer: TokenizerOptions, reading: Reading, method: Methods = None,
            target: TargetClass = None, weights: Sources = None, model: Names = None, top: Top = 5,
            samples: Samples = 256, prototypes: PrototypeFiles = None, image_size: OwnSize = None,
            output: OutputFolder = Path("spit-output"), device: Device = "cpu", as_json: AsJson = False) -> int:
    """Show which pixels a prediction rests on.

    For cat.jpg: cat.explain.png (image, tokens and a map for each method, a row for each model), cat.occlusion.png
    (what is left without the most important pixels, and with nothing but them), cat.METHOD.npy (each map, float32) and
    cat.explain.json (classes, scores). As in classification, the central square is seen. LIME, 256 forward passes,
    takes by far the longest. An image that cannot be read is named, the others go on, and the exit code is 2.
    """
    place = choose_device(device)
    inputs = find_inputs(images, output)
    given = [item.path for item in inputs]
    with waiting("Loading the model"):
        from spit.cli.models import choose_size

        methods = listed(method) if method else None
        explained = _load(weights or [], model or [], tokenizer, place, methods, samples, prototypes or [])
        classes = [_class(target, item.model) for item in explained]
        size = choose_size(image_size, {item.name: item.model for item in explained})

    def work(item: Input, say: Say) -> dict[str, Any]:
        image = reading.load(item.path)
        contents, document = _describe(item, image, explained, classes, top, size, place, say)
        write_about(output / f"{item.stem}.explain.json", document,
                    {output / name: data for name, data in contents.items()}, given)
        return document

    outcome = for_each(inputs, "Explaining", work)
    if as_json:
        print_json({"output": str(output), "images": outcome.answers, "failed": outcome.failures()})
    else:
        for document in outcome.answers:
            _show(document, output)
        for own in explained:
            for name, reason in own.left_out.items():
                answers().print(Text(f"{own.name}: {name} is left out; {reason}"))
    return outcome.code


def _load(sources: list[str], names: list[str], options: TokenizerOptions, device: str, methods: list[str] | None,
          samples: int, files: list[Path]) -> list[Explained]:
    from spit.attribution.methods import choose_methods, create_method
    from spit.cli.models import called, load_classifier

    for name in methods or ():
        create_method(name)  # an unknown one is refused before anything is loaded
    short = [called(source) for source in sources]
    if len(set(short)) < len(short):  # runs/a/model and runs/b/model
        short = [source.strip("/").replace("/", "_") for source in sources]
    asked: list[tuple[str, str | None, str | None]] = [(own, source, None)
                                                       for own, source in zip(short, sources, strict=True)]
    asked += [(name, None, name) for name in names or ([] if sources else [DEFAULT_MODEL])]
    if len({name for name, _, _ in asked}) < len(asked):
        raise ValueError("expected each model once, got one twice")

    def prepare(name: str, model: "SpitModel") -> Explained:
        left_out: dict[str, str] = {}
        chosen = choose_methods(model, methods or None, samples, files,
                                lambda method, error: left_out.update({method: str(error)}))
        return Explained(name, model, chosen, left_out)

    return [prepare(name, load_classifier(source, registered, options, device)) for name, source, registered in asked]


def _class(target: str | None, model: "SpitModel") -> int | None:
    """The class that ``--target`` names; None for the predicted one."""
    import difflib

    from spit.data.classes import class_names

    names = class_names(model.config)
    if target is None or (target.isdecimal() and int(target) < len(names)):
        return None if target is None else int(target)
    folded = [name.casefold() for name in names]
    found = [index for index, name in enumerate(folded) if name == target.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"--target {target!r} is the name of classes {' and '.join(map(str, found))}; give the index")
    near = [name for name in folded if target.casefold() in name.split()][:4] or difflib.get_close_matches(
        target.casefold(), folded, n=1)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"expected --target as a class from 0 to {len(names) - 1} or its name, got {target!r}{hint}")


def _describe(item: Input, image: Any, explained: list[Explained], classes: list[int | None], top: int, size: int,
              device: str, say: Say) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Every picture and map to be written about one image, below the output folder, and its JSON."""
    from spit import __version__
    from spit.attribution.drawing import occlusion_rows, panel_row
    from spit.cli.models import as_json as guesses_json
    from spit.cli.models import guess
    from spit.data.crops import central_square
    from spit.drawing import draw_panel, encode_png

    square = central_square(image, size).to(device)
    contents: dict[str, bytes] = {}
    panel, strips, documents = [], [], []
    for own, wanted in zip(explained, classes, strict=True):
        doing = shown(item.path.name) + (f", {own.name}" if len(explained) > 1 else "")
        say(f"{doing}: tokens (the first run compiles)")
        guesses, tokens = guess(own.model, image, size, own.model.config.num_classes)
        target = guesses[0] if wanted is None else next(item for item in guesses if item.index == wanted)
        maps = {method.name: _explain(own.model, square, method, target.index, doing, say) for method in own.methods}
        say(f"{doing}: occlusions and pictures")
        of_class = [method.name for method in own.methods if method.of_class]
        named = target if of_class else guesses[0]
        seen = "" if named is guesses[0] else f"; seen as {guesses[0].name}, {guesses[0].probability:.1%}"
        panel.append(panel_row(square, own.model, maps, own.name, f"{named.name}, {named.probability:.1%}{seen}"))
        first = next(iter(maps))
        before = f"{own.name}, {target.name}" if len(explained) > 1 else target.name
        strips += occlusion_rows(square, own.model, maps[first], target.index, f"{before} {target.probability:.1%}")
        files = {name: f"{item.stem}.{f'{own.name}.' if len(explained) > 1 else ''}{name}.npy" for name in maps}
        contents |= {files[name]: _npy(values) for name, values in maps.items()}
        documents.append({"model": own.name, "tokenizer": own.model.config.tokenizer, "tokens": tokens,
                          "top": guesses_json(guesses[:top]), "target": vars(target).copy(), "of_class": of_class,
                          "maps": files, "left_out": own.left_out})
    files = {"panel": f"{item.stem}.explain.png", "occlusion": f"{item.stem}.occlusion.png"}
    note = f"Pixels in the order of {first}. What goes becomes the mean colour; below, the probability before and after"
    contents[files["panel"]] = encode_png(draw_panel(panel, item.path.name))
    contents[files["occlusion"]] = encode_png(draw_panel(strips, item.path.name, note))
    document = {"image": str(item.path), "size": size, "models": documents, "files": files, "spit": __version__}
    return contents, document


def _explain(model: "SpitModel", square: Any, method: "Method", target: int, doing: str, say: Say) -> Any:
    """One map, ``(H, W)``; LIME says how far it is."""
    from spit.attribution import Lime
    from spit.attribution import explain as explain_images

    say(f"{doing}: {method.name}")
    if isinstance(method, Lime):
        total = method.samples
        method = replace(method, progress=lambda masks: say(f"{doing}: lime, {masks} of {total} masks"))
    return explain_images(model, square, method, target)[0]


def _npy(values: Any) -> bytes:
    import numpy as np

    buffer = io.BytesIO()
    np.save(buffer, values.cpu().numpy(), allow_pickle=False)
    return buffer.getvalue()


def _show(document: dict[str, Any], output: Path) -> None:
    console = answers()
    for part in document["models"]:
        about = f"{shown(document['image'])}, {part['model']} ({part['tokens']} tokens)"
        console.print(Text(f"{about}: {_subject(part)}", style="bold"))
        console.print(guess_table(part["top"]))
    console.print(Text(f"The panel is {shown(output / document['files']['panel'])}", style="bold green"))


def _subject(part: dict[str, Any]) -> str:
    """What the maps are of: the class, but for the methods that know none."""
    free = [name for name in part["maps"] if name not in part["of_class"]]
    told = [f"explained is {part['target']['name']}, {part['target']['probability']:.1%}"] if part["of_class"] else []
    if free:
        told.append(f"{', '.join(free)} {'are' if len(free) > 1 else 'is'} the same for any class")
    return "; ".join(told)
