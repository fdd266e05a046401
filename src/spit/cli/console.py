"""What the command line says: answers on stdout, progress and errors on stderr."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Item = TypeVar("Item")
Say = Callable[[str], None]
PATIENCE = 10  # seconds without a word where there is no terminal to draw on


def answers() -> Console:
    """The console on stdout; made when it is used, so that it writes where stdout then points."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1000  # what reads a pipe wants a row on a line, however long its paths are
    return console


def tell(message: str) -> None:
    """Say on stderr what went wrong, or what is to be known, in one line."""
    print("spit:", " ".join(message.split()), file=sys.stderr, flush=True)


def print_json(document: dict[str, Any]) -> None:
    """The one JSON document on stdout."""
    print(json.dumps(document, indent=2), flush=True)


def shown(path: str | os.PathLike[str]) -> str:
    """A path as it can be printed on one line, whatever its name has in it."""
    text = os.fspath(path)
    return text if text.isprintable() else repr(text)


@contextmanager
def track(items: Sequence[Item], description: str) -> Iterator[tuple[Iterator[Item], Say]]:
    """The items, to be taken one by one behind a progress bar, and a way to say what is being done with one.

    Where stderr is no terminal there is no bar, and what is said is a line if nothing was for 10 seconds.
    """
    console = Console(stderr=True)
    counts = (BarColumn(), MofNCompleteColumn()) if len(items) > 1 else ()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *counts, TimeElapsedColumn())
    spoken = time.monotonic()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(description, total=len(items))

        def say(text: str) -> None:
            nonlocal spoken
            progress.update(task, description=text)
            if not console.is_terminal and time.monotonic() - spoken >= PATIENCE:
                tell(text)
                spoken = time.monotonic()

        yield iter(progress.track(items, task_id=task)), say


def long_bar(console: Console) -> Progress:
    """A bar with the time that is left, for work of minutes; nothing where the console is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def waiting(description: str) -> Iterator[Say]:
    """A spinner with the seconds that have passed, and a way to say what is being done, as :func:`track` has it."""
    with track([None], description) as (_, say):
        yield say
