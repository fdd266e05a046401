"""Output of the command line: results on stdout, progress and errors on stderr."""

import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

from rich import progress
from rich.console import Console
from rich.table import Table
from rich.text import Text

Say = Callable[..., None]  # takes a text, and the numbers of what is done and of all
PATIENCE = 10  # seconds between progress lines if stderr is no terminal
SWITCH = "SPIT_TRACEBACK"  # 1 in the environment shows the traceback in place of a line
CALLS = ("__call__", "hierarchy")  # of a tokenizer; an option that is refused while it is made has its own line


def answers() -> Console:
    """The console on stdout; made at each use, so that it writes to the present stdout."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1000  # one line a row in a pipe, however long the paths
    return console


def show(text: str, style: str = "") -> None:
    """Print text on stdout as it is: no markup is read from names in it."""
    answers().print(Text(text, style=style))


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1, title: str = "",
               marked: Collection[int] = ()) -> None:
    """Print a table; its first columns hold ``words``, the others figures. The rows ``marked`` are bold."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index < words else "right", overflow="fold")
    for index, row in enumerate(rows):
        table.add_row(*map(Text, row), style="bold" if index in marked else None)
    answers().print(table)


def tell(message: str) -> None:
    """Print a message on stderr, in one line."""
    print("spit:", " ".join(message.split()), file=sys.stderr, flush=True)


def tell_compiling() -> None:
    """Say on stderr that the first tokens take longer, if the kernels are not compiled yet."""
    from spit.kernels.numba.compilation import in_cache  # not at the top: it imports numba
    from spit.kernels.numba.contraction import link_regions

    if not in_cache(link_regions):
        tell("compiling once on this machine, about ten seconds; spit doctor can do it beforehand")


def print_json(document: dict[str, Any]) -> None:
    """The one JSON document on stdout."""
    print(json.dumps(document, indent=2), flush=True)


def about_time(seconds: float) -> str:
    """A length of time as one would say it: 40 s, 4 min, 2 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def shown(path: str | os.PathLike[str]) -> str:
    """A path in printable characters, on one line."""
    from spit.data.images import printable  # not at the top: it imports numpy and Pillow

    return printable(path)


@contextmanager
def waiting(description: str, total: float | None = 1, patience: float | None = None) -> Iterator[Say]:
    """A spinner with the elapsed time, and a function that shows a text and how much of a total is done.

    There is a bar if the total is not 1. If stderr is no terminal, progress is a line at most every ``patience`` (10)
    seconds.
    """
    console, patience = Console(stderr=True), PATIENCE if patience is None else patience
    counts = () if total == 1 else (progress.BarColumn(), progress.MofNCompleteColumn())
    columns = (progress.SpinnerColumn(), progress.TextColumn("{task.description}", markup=False), *counts,
               progress.TimeElapsedColumn(), *([progress.TimeRemainingColumn()] if counts else []))
    spoken = time.monotonic()
    with progress.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        number = bar.add_task(description, total=total)
        task = bar.tasks[0]

        def say(text: str | None = None, done: float | None = None, total: float | None = None) -> None:
            nonlocal spoken
            bar.update(number, description=text, completed=done, total=total)
            if not console.is_terminal and time.monotonic() - spoken >= patience:
                count = f", {task.completed:.0f} of {task.total:.0f}" if counts and task.total else ""
                tell(f"{task.description}{count}")
                spoken = time.monotonic()

        yield say


def traceback_wanted() -> bool:
    """Whether the user asked for tracebacks."""
    return os.environ.get(SWITCH) == "1"


def reason(error: BaseException) -> str:
    """An expected error in one line."""
    return own_tokenizer_line(error) or " ".join(str(error).split())


def own_tokenizer_line(error: BaseException) -> str | None:
    """A line about an error in the call of a tokenizer that is not one of spit's; None for any other error."""
    if "spit.tokenizers" not in sys.modules:  # none was called; importing it imports torch
        return None
    from spit.tokenizers import TOKENIZERS, Tokenizer

    for frame, _ in walk_tb(error.__traceback__):
        owner = frame.f_locals.get("self") if frame.f_code.co_name in CALLS else None
        if isinstance(owner, Tokenizer) and not type(owner).__module__.startswith("spit."):
            name = TOKENIZERS.name_of(owner) or type(owner).__name__
            said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
            return f"your tokenizer {name!r} raised {said}; {SWITCH}=1 before the command shows the traceback"
    return None
