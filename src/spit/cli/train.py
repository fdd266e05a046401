"""``spit train``: a recipe carried out, or what is left of it."""

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from spit.cli import STOPPED
from spit.cli.console import answers, long_bar, print_json, shown
from spit.cli.options import AsJson, Device, choose_device
from spit.tokens import plural

if TYPE_CHECKING:
    from spit.training.journal import Listener
    from spit.training.recipe import Recipe

RecipeFile = Annotated[Path, typer.Argument(metavar="RECIPE", show_default=False,
                                            help="A TOML file, or one that comes with spit: smoke, transfer …")]
Changes = Annotated[list[str] | None, typer.Option(
    "--set", metavar="KEY=VALUE", show_default=False,
    help="Change a value of the recipe, optimization.epochs=10 say; may be given several times.")]
RunFolder = Annotated[Path | None, typer.Option(
    "--output", "-o", metavar="FOLDER", show_default=False,
    help="The run's folder, run.output unless told. A run that is there already is gone on with.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin anew; refuses where there is a run already.")]
Force = Annotated[bool, typer.Option("--force", help="With --fresh: lose the run that is there.")]


def train(recipe: RecipeFile, changes: Changes = None, output: RunFolder = None, fresh: Fresh = False,
          force: Force = False, device: Device = "auto", as_json: AsJson = False) -> int:
    """Train a model by a recipe.

    Run the same command again to go on with a run that was stopped, killed, or lost its machine. Many
    GPUs or machines: `torchrun --nproc-per-node 8 -m spit.cli train RECIPE`. SIGTERM and Ctrl-C save
    first; exit code 130 says so.
    """
    place = choose_device(device)
    from spit.training.recipe import read_recipe

    asked = read_recipe(recipe, changes or [])
    return carry_out(asked, output if output is not None else Path(asked.run.output), place, fresh, force, as_json)


def carry_out(asked: "Recipe", folder: Path, place: str, fresh: bool, force: bool, as_json: bool) -> int:
    """Train by a recipe, show how it goes and what came of it; the exit code."""
    from spit.training.distributed import Team
    from spit.training.errors import Stopped
    from spit.training.train import train as carry_out_recipe

    team = Team.join(place)
    many = team.together
    try:
        with watching(team.first) as listener:
            result = carry_out_recipe(asked, folder, team, listener, fresh, force)
    except Stopped:
        if team.first:
            raise
        return STOPPED
    finally:
        team.leave()
    if team.first:
        if as_json:
            print_json(result)
        else:
            _show(result, folder)
    if many:
        # Threads of torch's that outlive the interpreter abort it now and then, and torchrun takes the run for failed.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    return 0


def _show(result: Mapping[str, Any], folder: Path) -> None:
    ended = "had ended already" if result.get("finished") else f"ended after {result['seconds']:.0f} s"
    figures = ", ".join(f"{name} {value:.4g}" for name, value in result["figures"].items())
    answers().print(Text(f"The run in {shown(folder)} {ended}: {plural(result['steps'], 'step')}\n"
                         f"{figures or 'not validated'}\n"
                         f"The model is in {shown(result['model'])}, the report in {shown(folder / 'report.md')}"))


class _Bar:
    """A progress bar on a terminal, and plain lines elsewhere."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bar = long_bar(console)
        self.task = self.bar.add_task("Training", total=None)
        self.total = 0

    def begin(self, step: int, total: int) -> None:
        self.total = total
        self.bar.update(self.task, completed=step, total=total)

    def advance(self, step: int) -> None:
        self.bar.update(self.task, completed=step)

    def figures(self, line: Mapping[str, Any]) -> None:
        if line["kind"] == "train":
            speed = line["images_per_second"]
            digits = 0 if speed >= 10 else 1
            text = f"loss {line.get('loss', float('nan')):.4f} lr {line['lr']:.2e} {speed:.{digits}f} im/s"
            self.bar.update(self.task, description=text)
        else:
            text = "validation " + " ".join(f"{name} {value:.4g}" for name, value in line.items()
                                            if name not in ("kind", "step", "epoch"))
        if line["kind"] != "train" or not self.console.is_terminal:
            self.say(f"step {line['step']}/{self.total} {text}")

    def say(self, text: str) -> None:
        if self.console.is_terminal:
            self.console.print(Text(text))
        elif not self.console.quiet:
            print(text, file=sys.stderr, flush=True)


class _Words(logging.Handler):
    """What the library warns of, above the bar."""

    def __init__(self, listener: "Listener") -> None:
        super().__init__()
        self.listener = listener

    def emit(self, record: logging.LogRecord) -> None:
        self.listener.say(f"spit: {record.getMessage()}")


@contextmanager
def watching(speaks: bool = True) -> Iterator["Listener"]:
    """A listener for a run that shows how it goes on stderr, in the one process of many that speaks."""
    listener = _Bar(Console(stderr=True, quiet=not speaks))
    words = _Words(listener)
    logger = logging.getLogger("spit")
    logger.addHandler(words)
    try:
        with listener.bar:
            yield listener
    finally:
        logger.removeHandler(words)
