"""``spit train``: run a recipe, or resume it."""

import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from spit.cli import STOPPED
from spit.cli.console import LongBar, about_time, print_json, show, shown
from spit.cli.options import Output, Running
from spit.errors import Stopped
from spit.options import Options, option, same
from spit.tokens import plural

if TYPE_CHECKING:
    from spit.training.journal import Listener
    from spit.training.recipe import Recipe

RecipeFile = Annotated[Path, typer.Argument(
    metavar="RECIPE", show_default=False,
    help="A TOML file, or a recipe that comes with spit, such as smoke or transfer.")]

SILENCE = 30  # seconds between lines at most if stderr is no terminal


@dataclass(frozen=True)
class RunOptions(Options):
    """What ``spit train`` and ``spit retrofit`` share."""

    changes: tuple[str, ...] = option((), "Change a value of the recipe, such as optimization.epochs=10; may be "
                                          "repeated", metavar="KEY=VALUE", flag="set")
    output: Path | None = same(Output, "output", None)
    fresh: bool = option(False, "Start a new run; refuse if the folder holds one")
    force: bool = option(False, "With --fresh: delete the run in the folder first")


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
    from spit.training.distributed import Team
    from spit.training.train import train as train_recipe

    folder = run.output if run.output is not None else Path(recipe.run.output)
    team = Team.join(running.place)
    many = team.together
    try:
        with _watching(team.first) as listener:
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
    ended = "had ended already" if result.get("finished") else f"ended after {result['seconds']:.0f} s"
    figures = ", ".join(_words(result["figures"]))
    validation = (f"Validation: {figures}" if figures else
                  "No validation: the recipe names no photos for it; --set data.validation=FOLDER does")
    show(f"The run in {shown(folder)} {ended}: {plural(result['steps'], 'step')}\n{_losses(folder)}{validation}\n"
         f"The model is in {shown(result['model'])}, the report in {shown(folder / 'report.md')}")


def _words(figures: Mapping[str, Any]) -> list[str]:
    """Figures of a validation, accuracies in per cent."""
    shares = {"top1": "top-1", "top5": "top-5"}
    return [f"{shares[name]} {value:.1%}".replace("%", " %") if name in shares else f"{name} {value:.4g}"
            for name, value in figures.items()]


def _losses(folder: Path) -> str:
    """The training loss at first and at the end, as a line; nothing if there are none."""
    from spit.training.journal import read_metrics

    lines = [line for line in read_metrics(folder) if line.get("kind") == "train" and "loss" in line]
    told = dict.fromkeys(f"{line['loss']:.4g} by step {line['step']}" for line in (*lines[:1], *lines[-1:]))
    return f"Training loss: {', '.join(told)}\n" if told else ""


@contextmanager
def _watching(speaks: bool) -> Iterator["Listener"]:
    """A listener that shows a run on stderr: a bar on a terminal, plain lines elsewhere. Only one process speaks."""
    from spit.training.journal import Listener

    console = Console(stderr=True, quiet=not speaks)
    bar = LongBar(console, lines=False)
    task = bar.add_task("Training", total=None)

    class Bar(Listener):
        total = first = since = 0
        began = spoken = 0.0

        def begin(self, step: int, total: int) -> None:
            self.total, self.first, self.since = total, step, step
            self.began = self.spoken = time.monotonic()
            bar.update(task, completed=step, total=total)

        def advance(self, step: int) -> None:
            bar.update(task, completed=step)
            one = step == self.first + 1
            if not console.is_terminal and (one or time.monotonic() - self.spoken >= SILENCE):
                self.line(step, "")
            if one:  # which may compile: what is left is estimated from the next ones
                self.began, self.since = time.monotonic(), step

        def line(self, step: int, text: str) -> None:
            self.spoken = time.monotonic()
            left = ""
            if self.since < step < self.total:
                seconds = (self.spoken - self.began) / (step - self.since) * (self.total - step)
                left = f"about {about_time(seconds)} left"
            self.say(" ".join(filter(None, (f"step {step}/{self.total}", text, left))))

        def figures(self, line: Mapping[str, Any]) -> None:
            training = line["kind"] == "train"
            if training:
                speed = line["images_per_second"]
                text = (f"loss {line.get('loss', float('nan')):.4f} lr {line['lr']:.2e} "
                        f"{speed:.{0 if speed >= 10 else 1}f} im/s")
                bar.update(task, description=text)
            else:
                text = "validation " + " ".join(_words({name: value for name, value in line.items()
                                                        if name not in ("kind", "step", "epoch")}))
            if not training or not console.is_terminal:
                self.line(line["step"], text)

        def say(self, text: str) -> None:
            console.print(Text(text), soft_wrap=True)

    listener = Bar()
    warnings = logging.Handler()
    warnings.emit = lambda record: listener.say(f"spit: {record.getMessage()}")  # type: ignore[method-assign]
    logger = logging.getLogger("spit")
    logger.addHandler(warnings)
    try:
        with bar:
            yield listener
    finally:
        logger.removeHandler(warnings)
