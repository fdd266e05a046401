"""``spit convert``: a checkpoint of another project as a folder that spit loads."""

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from spit.cli.console import print_json, show, shown, waiting
from spit.cli.options import JsonOnly, Output
from spit.interop.published.options import TOKENIZERS
from spit.options import Options, option

Checkpoint = Annotated[Path, typer.Argument(
    metavar="FILE", help="Checkpoint, .pth or .safetensors: of the authors' release, or a timm ViT state dict.",
    show_default=False)]


@dataclass(frozen=True)
class Converting(Options):
    """What the tensors of a checkpoint do not tell."""

    tokenizer: str | None = option(
        None, f"{', '.join(TOKENIZERS)} (default: by spit, rvit or vit in the name of a file of the release, or "
              "superpixel; patch for timm's)", metavar="NAME")
    heads: int | None = option(None, "Attention heads (default: one for each 64 columns)", least=1)
    sigma: float | None = option(None, "Bandwidth of the release's histograms (default: 0.05 for width 768 with "
                                       "gradients, else 0.025)", above=0, below=inf)
    train_size: int | None = option(None, "Side of the images that a model of the release was trained on, at which it "
                                          "is evaluated (default: 256; a fine-tuned one has 384)", least=1)


def convert(file: Checkpoint, converting: Converting, output: Output, answering: JsonOnly) -> int:
    """Convert a checkpoint of the authors' release, or a timm ViT state dict, to a folder that spit loads.

    The folder is written whole or not at all, and --model takes it. A model of the release keeps its own tokenizer and
    features.
    """
    with waiting("Converting"):
        from spit.interop.read import read_file
        from spit.weights import digest, save

        model = read_file(file, converting.tokenizer, converting.heads, converting.sigma,
                          converting.train_size).build()
        folder = save(model, output.output)
    config = model.config
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if answering.as_json:
        print_json({"source": str(file), "model": str(folder), "parameters": parameters, "digest": digest(model),
                    "config": config.to_dict()})
    else:
        show(f"{shown(file)}: tokenizer {config.tokenizer}, features {config.extractor}, σ {config.position_sigma:g}, "
             f"width {config.width}, depth {config.depth}, {config.num_classes} classes, {parameters / 1e6:.1f} M "
             "parameters\n"
             f"The model is in {shown(folder)}; give it to any command with --model")
    return 0
