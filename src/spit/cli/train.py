"""``spit train``: run a recipe, or resume it."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spit.cli.console import print_json, show, shown, tell_compiling
from spit.cli.options import Output, Running
from spit.cli.outputs import check_folder
from spit.errors import Stopped
from spit.interruption import STOPPED
from spit.options import Options, option, same
from spit.wording import plural

if TYPE_CHECKING:
    from spit.training.recipe import Recipe

RecipeFile = Annotated[Path, typer.Argument(
    metavar="RECIPE", show_default=False,
    help="A TOML file, or a recipe that comes with spit, such as smoke or transfer.")]


@dataclass(frozen=True)
class RunOptions(Options):
    """What ``spit train`` and ``spit retrofit`` share."""

    changes: tuple[str, ...] = option((), "Change a value of the recipe, such as optimization.epochs=10; may be "
                                          "repeated", metavar="KEY=VALUE", flag="set")
    output: Path | None = same(Output, "output", None)
    fresh: bool = option(False, "Start a new run; refuse if the folder holds one")
    force: bool = option(False, "With --fresh: delete the run in the folder, once the new one is checked")


def train(recipe: RecipeFile, run: RunOptions, running: Running) -> int:
    """Train a model by a recipe.

    The run goes to --output (default: run.output of the recipe). A second run of the same command resumes one that was
    stopped or killed, and leaves one that has ended as it is. Many GPUs or machines:
    `torchrun --nproc-per-node 8 -m spit.cli train RECIPE`. SIGTERM and Ctrl-C save a checkpoint first; the exit code
    is then 130.
    """
    from spit.training.recipe import Recipe

    return carry_out(Recipe.read(recipe, run.changes), run, running)


def carry_out(recipe: "Recipe", run: RunOptions, running: Running) -> int:
    """Train by a recipe and show progress and result; return the exit code."""
    from spit.cli.watching import watching
    from spit.training.distributed import Team
    from spit.training.train import train as train_recipe

    if run.force and not run.fresh:
        raise ValueError("--force needs --fresh")
    folder = run.output if run.output is not None else Path(recipe.run.output)
    team = Team.join(running.place)
    many = team.together
    try:
        if team.first:
            check_folder(folder)
            tell_compiling()
        with watching(team.first) as listener:
            result = train_recipe(recipe, folder, team, listener, run.fresh, run.force)
    except Stopped:
        if team.first:
            raise
        return STOPPED
    finally:
        team.leave()
    if team.first:
        print_json(result) if running.as_json else _show(result, folder)
    if many:
        # Threads of torch can abort the interpreter while it shuts down, and torchrun would report a failed run.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    return 0


def _show(result: Mapping[str, Any], folder: Path) -> None:
    from spit.cli.watching import in_words

    ended = "was already finished" if result.get("finished") else f"finished after {result['seconds']:.0f} s"
    figures = ", ".join(in_words(result["figures"]))
    validation = (f"Validation: {figures}" if figures else
                  "No validation: the recipe names no photos for it; --set data.validation=FOLDER does")
    show(f"The run in {shown(folder)} {ended}: {plural(result['steps'], 'step')}\n{validation}\n"
         f"The model is in {shown(result['model'])}, the report in {shown(folder / 'report.md')}")
