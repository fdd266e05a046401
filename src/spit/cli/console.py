"""Output of the command line: results on stdout, progress and errors on stderr."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from rich import progress
from rich.console import Console
from rich.table import Table
from rich.text import Text

Item = TypeVar("Item")
Say = Callable[[str], None]
PATIENCE = 10  # seconds between progress lines if stderr is no terminal


def answers() -> Console:
    """The console on stdout; made at each use, so that it writes to the present stdout."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 1000  # one line a row in a pipe, however long the paths
    return console


def show(text: str, style: str = "") -> None:
    """Print text on stdout as it is: no markup is read from names in it."""
    answers().print(Text(text, style=style))


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> None:
    """Print a table; its first columns hold ``words``, the others figures."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="left" if index < words else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
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
def track(items: Sequence[Item], description: str,
          patience: float | None = None) -> Iterator[tuple[Iterator[Item], Say]]:
    """The items behind a progress bar, and a function that shows what is being done.

    If stderr is no terminal there is no bar, and progress is a line at most every ``patience`` (10) seconds.
    """
    console, patience = Console(stderr=True), PATIENCE if patience is None else patience
    counts = (progress.BarColumn(), progress.MofNCompleteColumn()) if len(items) > 1 else ()
    columns = (progress.SpinnerColumn(), progress.TextColumn("{task.description}", markup=False), *counts,
               progress.TimeElapsedColumn())
    spoken = time.monotonic()
    with progress.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=len(items))

        def say(text: str) -> None:
            nonlocal spoken
            bar.update(task, description=text)
            if not console.is_terminal and time.monotonic() - spoken >= patience:
                tell(text)
                spoken = time.monotonic()

        yield iter(bar.track(items, task_id=task)), say


class LongBar(progress.Progress):
    """A bar with the time left, for work of minutes; a line at most every 10 seconds if stderr is no terminal.

    Args:
        console: on stderr.
        lines: whether there are lines; a caller may have its own.
    """

    def __init__(self, console: Console, lines: bool = True) -> None:
        columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn(),
                   progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._lines, self._spoken = lines and not console.is_terminal, time.monotonic()

    def update(self, task_id: progress.TaskID, **changes: Any) -> None:
        super().update(task_id, **changes)
        if self._lines and time.monotonic() - self._spoken >= PATIENCE:
            task = next(task for task in self.tasks if task.id == task_id)
            total = "" if task.total is None else f", {task.completed:.0f} of {task.total:.0f}"
            tell(f"{task.description}{total}")
            self._spoken = time.monotonic()


@contextmanager
def waiting(description: str, patience: float | None = None) -> Iterator[Say]:
    """A spinner with the elapsed time, and a function that shows what is being done; see :func:`track`."""
    with track([None], description, patience) as (_, say):
        yield say
