"""``spit classify``: the likeliest classes of images."""

from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from spit.cli.console import Say, answers, print_json, shown
from spit.cli.inputs import Input, find_inputs, for_each
from spit.cli.options import Images, Models, Reading, Running, TokenizerChoice
from spit.options import Options, option
from spit.predictor import Prediction


@dataclass(frozen=True)
class Naming(Options):
    """How many classes are named."""

    top: int = option(5, "Number of classes to name", least=1)


def classify(images: Images, models: Models, tokenizer: TokenizerChoice, naming: Naming, reading: Reading,
             running: Running) -> int:
    """Name the likeliest classes of images.

    The short side is resized, bicubic, and the central square classified, as ViTs are evaluated. Classes have the
    model's own names; 1,000 classes without names are ImageNet's. An image that cannot be read is reported, the others
    go on, and the exit code is 2.
    """
    inputs = find_inputs(images)
    models.expect_one()
    [predictor] = models.load_classifiers(running.device, tokenizer)

    def work(item: Input, _: Say) -> dict[str, Any]:
        prediction = predictor(reading.load(item.path), crop=True)
        return {"image": str(item.path), "tokens": int(prediction.partition.counts[0]),
                "top": top_json(prediction, naming.top)}

    outcome = for_each(inputs, "Classifying", work)
    if running.as_json:
        described = {"name": predictor.name, "size": predictor.size, "digest": predictor.digest,
                     "config": predictor.model.config.to_dict()}
        print_json({"model": described, "images": outcome.answers, "failed": outcome.failures()})
    else:
        console = answers()
        for document in outcome.answers:
            console.print(Text(f"{shown(document['image'])} ({document['tokens']} tokens)", style="bold"))
            console.print(top_table(document["top"]))
    return outcome.code


def top_json(prediction: Prediction, count: int) -> list[dict[str, Any]]:
    """The likeliest classes of the first image, as JSON has them."""
    return [{"index": index, **guess._asdict()} for index, guess in zip(
        prediction.top_classes(count)[0].tolist(), prediction.top(count)[0], strict=True)]


def top_table(top: list[dict[str, Any]]) -> Table:
    """Probabilities and classes, one row each."""
    table = Table(box=None, show_header=False, pad_edge=True)
    table.add_column(justify="right")
    for item in top:
        table.add_row(f"{item['probability']:.1%}", Text(item["name"]))
    return table
