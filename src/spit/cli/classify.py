"""``spit classify``: the likeliest classes of images."""

from typing import TYPE_CHECKING, Any

from spit.answers.classify import Classify
from spit.cli.answers import answer_each
from spit.cli.console import Say, show, shown
from spit.cli.inputs import Input, find_inputs
from spit.cli.options import Images, Models, Reading, Running, TokenizerChoice
from spit.wording import plural

if TYPE_CHECKING:
    from spit.predictor import Predictor


def classify(images: Images, models: Models, tokenizer: TokenizerChoice, question: Classify, reading: Reading,
             running: Running) -> int:
    """Name the likeliest classes of images.

    The short side is resized, bicubic, and the central square classified, as ViTs are evaluated; a model that was
    fine-tuned on whole images sees the whole image as a square. Classes have the model's own names; 1,000 classes
    without names are ImageNet's. An image that cannot be read is reported, the others go on, and the exit code is 2.
    """
    inputs = find_inputs(images)
    predictor = models.load_one(running.device, tokenizer)
    predictor.expect_classes()

    def work(item: Input, _: Say) -> dict[str, Any]:
        prediction = question.see(predictor, reading.load(item.path))
        return {"image": str(item.path), "tokens": int(prediction.partition.counts[0]),
                "top": [one.to_dict() for one in question.of(prediction)[0]]}

    def show_all(documents: list[dict[str, Any]]) -> None:
        for document in documents:
            show(f"{shown(document['image'])} ({predictor.name}, {square(predictor)}, "
                 f"{plural(document['tokens'], 'token')})", "bold")
            show_top(document["top"])

    return answer_each(inputs, "Classifying", work, show_all, running.as_json, model={
        "name": predictor.name, "size": predictor.size, "digest": predictor.digest,
        "config": predictor.model.config.to_dict()})


def square(predictor: "Predictor") -> str:
    """What a classifier sees of an image, in words."""
    return "whole image as a square" if predictor.model.config.eval_crop is None else "central square"


def show_top(top: list[dict[str, Any]]) -> None:
    """Print probabilities and classes, a line each."""
    for item in top:
        chance = item["probability"]
        show(f"{'<0.1%' if chance < 0.0005 else f'{chance:.1%}':>7} {item['name']}")
