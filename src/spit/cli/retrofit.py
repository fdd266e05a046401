"""``spit retrofit``: turn a pretrained patch ViT into a superpixel ViT, on photos without labels."""

from dataclasses import dataclass
from pathlib import Path

from spit.cli.options import Running, tokenizers
from spit.cli.train import RunOptions, carry_out
from spit.options import Options, option


@dataclass(frozen=True)
class RetrofitOptions(Options):
    """Options of the recipe that have their own flags; ``--set`` overrides them."""

    parent: str | None = option(None, "The ViT: what --model takes elsewhere, such as a timm ViT state dict "
                                      "(.safetensors or .pth)", metavar="NAME|PATH|HUB_ID")
    images: tuple[str, ...] = option((), "Photos to learn from, a folder or tar shards; may be repeated. Labels are "
                                         "not used", metavar="FOLDER")
    validation: str | None = option(None, "Photos to measure accuracy on: a sub-folder for each of the parent's "
                                          "classes, in their order", metavar="FOLDER")
    tokenizer: str | None = option(None, f"{', '.join(tokenizers())} (default: superpixel)", metavar="NAME")
    recipe: Path | None = option(None, "Everything else: a TOML file, or a recipe that comes with spit, such as "
                                       "retrofit_tiny", metavar="RECIPE")


def retrofit(options: RetrofitOptions, run: RunOptions, running: Running) -> int:
    """Give a pretrained ViT superpixel tokens.

    The student starts with all of the parent's weights and learns its answers on your photos. A second run of the same
    command resumes one that was stopped or killed, and leaves one that has ended as it is. Many GPUs:
    `torchrun --nproc-per-node 8 -m spit.cli retrofit …`.
    """
    from spit.training.retrofit import RetrofitRecipe

    given = {"parent.weights": options.parent, "data.validation": options.validation,
             "model.options.tokenizer": options.tokenizer, "data.train": options.images}
    flags = [(key, value) for key, value in given.items() if value]
    return carry_out(RetrofitRecipe.read(options.recipe, [*flags, *run.changes]), run, running)
