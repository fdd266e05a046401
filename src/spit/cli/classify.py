"""``spit classify``: what a model sees in images."""

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from spit.cli.console import Say, answers, print_json, shown, waiting
from spit.cli.inputs import Input, find_inputs, for_each
from spit.cli.options import AsJson, Device, Images, OwnSize, Reading, TokenizerOptions, Weights, choose_device

ModelName = Annotated[str | None, typer.Option(
    "--model", metavar="NAME", show_default=False,
    help="Insist on a named model of spit, spit_tiny_16 say; spit.list_models() names them.")]
Top = Annotated[int, typer.Option("--top", min=1, help="How many classes to name.")]


def classify(images: Images, tokenizer: TokenizerOptions, reading: Reading, weights: Weights = None,
             model: ModelName = None, top: Top = 5, image_size: OwnSize = None, device: Device = "cpu",
             as_json: AsJson = False) -> int:
    """Name the likeliest classes of images.

    The short side is resized to 8/7 of the image size, bicubic, and the central square classified, as
    ViTs are evaluated (256 and 224). Classes have the model's own names; where it has none, 1,000 classes
    are taken for ImageNet's. An image that cannot be read is named, the others go on, and the exit code is 2.
    """
    place = choose_device(device)
    inputs = find_inputs(images)
    with waiting("Loading the model"):
        from spit.cli.models import as_json as guesses_json
        from spit.cli.models import called, choose_size, guess, load_classifier

        classifier = load_classifier(weights, model, tokenizer, place)
        size = choose_size(image_size, {called(weights, model): classifier})

    def work(item: Input, _: Say) -> dict[str, Any]:
        guesses, tokens = guess(classifier, reading.load(item.path), size, top)
        return {"image": str(item.path), "tokens": tokens, "top": guesses_json(guesses)}

    outcome = for_each(inputs, "Classifying", work)
    if as_json:
        described = {"name": called(weights, model), "weights": weights, "image_size": size,
                     "config": classifier.config.to_dict()}
        print_json({"model": described, "images": outcome.answers, "failed": outcome.failures()})
    else:
        for document in outcome.answers:
            _show(document)
    return outcome.code


def _show(document: dict[str, Any]) -> None:
    console = answers()
    console.print(Text(f"{shown(document['image'])} ({document['tokens']} tokens)", style="bold"))
    console.print(guess_table(document["top"]))


def guess_table(top: list[dict[str, Any]]) -> Table:
    """Probabilities and classes, one row each."""
    table = Table(box=None, show_header=False, pad_edge=True)
    table.add_column(justify="right")
    for item in top:
        table.add_row(f"{item['probability']:.1%}", Text(item["name"]))
    return table
