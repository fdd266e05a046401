"""What the command line says: answers on stdout, progress and errors on stderr."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
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


def answers() -> Console:
    """The console on stdout; made when it is used, so that it writes where stdout then points."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1000  # what reads a pipe wants a row on a line, however long its paths are
    return console


def fail(message: str) -> None:
    """Say on stderr what went wrong, in one line."""
    print("spit:", " ".join(message.split()), file=sys.stderr, flush=True)


def print_json(document: dict[str, Any]) -> None:
    """The one JSON document on stdout."""
    print(json.dumps(document, indent=2), flush=True)


def shown(path: str | os.PathLike[str]) -> str:
    """A path as it can be printed on one line, whatever its name has in it."""
    text = os.fspath(path)
    return text if text.isprintable() else repr(text)


@contextmanager
def track(items: Sequence[Item], description: str) -> Iterator[Iterator[Item]]:
    """The items, to be taken one by one, behind a progress bar; one item, or no terminal, gets none."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    quiet = len(items) < 2 or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        yield iter(progress.track(items, description=description))


def long_bar(console: Console) -> Progress:
    """A bar with the time that is left, for work of minutes; nothing where the console is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
               TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def waiting(description: str) -> Iterator[None]:
    """A spinner with the seconds that have passed; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task(description, total=None)
        yield
