"""Models from what a user gives, and their answers about an image."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spit import registry, weights
from spit.cli.options import DEFAULT_MODEL, TokenizerOptions
from spit.data.classes import class_names
from spit.data.crops import central_square
from spit.errors import WeightsError
from spit.interop import from_timm
from spit.model import SpitModel

DEFAULT_SIZE = 224
WAYS = ("give --weights with a folder that spit.save_model wrote, a Hugging Face hub id (owner/name), or a ViT in "
        "timm's names (.safetensors, .pth)")


@dataclass(frozen=True)
class Guess:
    """A class and the probability the model gives it."""

    index: int
    name: str
    probability: float


def embedded(name: str) -> bool:
    """Whether trained weights of that model come with this version of spit."""
    return (registry.CHECKPOINTS / name / weights.CONFIG).is_file()


def called(source: str | None, name: str | None = None) -> str:
    """What ``--weights`` and ``--model`` name, in short: the model's name, or that of its file or folder."""
    if name is not None or source is None:
        return name or DEFAULT_MODEL
    return Path(source).stem if Path(source).is_file() else Path(source).name


def load_classifier(source: str | None, name: str | None, options: TokenizerOptions, device: str) -> SpitModel:
    """The model that ``--weights``, ``--model`` and the tokenizer's options ask for.

    Raises:
        WeightsError: no such weights, damaged ones, those of another model, or a model without classes.
        ValueError: an unknown model or tokenizer, or an option of another tokenizer.
    """
    model = load_source(source, name)
    if model.config.num_classes == 0:
        raise WeightsError(f"{source or name}: expected a model that knows classes, got one without a head")
    if options.anything:
        own = model.config
        model = model.with_tokenizer(options.build(own.tokenizer, dict(own.tokenizer_options)))
    return model.to(device).eval()


def load_source(source: str | None, name: str | None) -> SpitModel:
    if source is None:
        name = name or DEFAULT_MODEL
        registry.model_config(name)  # an unknown name is refused as such
        if not embedded(name):
            raise WeightsError(f"no trained weights of {name} come with this version of spit; {WAYS}")
        return registry.create_model(name, pretrained=True)
    path = Path(source)
    if path.is_file() or path.suffix.lower() in weights.FILE_SUFFIXES:
        if name is not None:
            raise ValueError(f"--model {name} names a model of spit, but {source} is a file, which tells its own "
                             "size; leave --model out (--tokenizer changes the tokens)")
        return from_timm(path)
    return weights.load(source) if name is None else registry.create_model(name, pretrained=source)


def choose_size(asked: int | None, models: Mapping[str, SpitModel], option: str = "--image-size") -> int:
    """Side of the square that models see: the one asked for, or the one that they say; 224 where none does.

    Raises:
        ValueError: none was asked for, and the models' own differ.
    """
    own = {name: model.config.image_size for name, model in models.items() if model.config.image_size}
    if asked is None and len(set(own.values())) > 1:
        listed = ", ".join(f"{name} {size}" for name, size in own.items())
        raise ValueError(f"expected models of one image size, got {listed}; give {option} for all of them")
    return asked or next(iter(own.values()), DEFAULT_SIZE)


@torch.inference_mode()
def guess(model: SpitModel, image: Tensor, size: int, top: int) -> tuple[list[Guess], int]:
    """The likeliest classes of an image's central square, and how many tokens it was cut into.

    Shape:
        image ``(3, H, W)`` uint8.
    """
    square = central_square(image, size).to(model.embedder.class_token.device)
    output = model(square[None], record=())
    values, indices = output.logits[0].float().softmax(0).topk(min(top, model.config.num_classes))
    names = class_names(model.config)
    guesses = [Guess(index, names[index], value)
               for index, value in zip(indices.tolist(), values.tolist(), strict=True)]
    return guesses, int(output.partition.counts[0])


def as_json(guesses: list[Guess]) -> list[dict[str, Any]]:
    """The guesses as JSON has them."""
    return [vars(item).copy() for item in guesses]
