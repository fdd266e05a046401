"""A run of training on stderr: a bar on a terminal, plain lines elsewhere."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from spit.cli.console import LongBar, about_time
from spit.training.journal import Listener

SILENCE = 30  # seconds between lines at most if stderr is no terminal


@contextmanager
def watching(speaks: bool) -> Iterator[Listener]:
    """A listener that shows a run, and spit's warnings beside it. Only one process speaks."""
    console = Console(stderr=True, quiet=not speaks)
    with LongBar(console, lines=False) as bar:
        watcher = Watcher(console, bar)
        warnings = logging.Handler()
        warnings.emit = lambda record: watcher.say(f"spit: {record.getMessage()}")  # type: ignore[method-assign]
        logger = logging.getLogger("spit")
        logger.addHandler(warnings)
        try:
            yield watcher
        finally:
            logger.removeHandler(warnings)


class Watcher(Listener):
    """Shows what a run does and how long it will take."""

    def __init__(self, console: Console, bar: LongBar) -> None:
        self._console, self._bar = console, bar
        self._task = bar.add_task("Training", total=None)
        self._total = self._first = self._since = 0
        self._began = self._spoken = 0.0

    def begin(self, step: int, total: int) -> None:
        self._total, self._first, self._since = total, step, step
        self._began = self._spoken = time.monotonic()
        self._bar.update(self._task, completed=step, total=total)

    def advance(self, step: int) -> None:
        self._bar.update(self._task, completed=step)
        one = step == self._first + 1
        if not self._console.is_terminal and (one or time.monotonic() - self._spoken >= SILENCE):
            self._line(step, "")
        if one:  # which may compile: what is left is estimated from the next ones
            self._began, self._since = time.monotonic(), step

    def figures(self, line: Mapping[str, Any]) -> None:
        training = line["kind"] == "train"
        if training:
            speed = line["images_per_second"]
            text = (f"loss {line.get('loss', float('nan')):.4f} lr {line['lr']:.2e} "
                    f"{speed:.{0 if speed >= 10 else 1}f} im/s")
            self._bar.update(self._task, description=text)
        else:
            text = "validation " + " ".join(in_words(line))
        if not training or not self._console.is_terminal:
            self._line(line["step"], text)

    def say(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def _line(self, step: int, text: str) -> None:
        self._spoken = time.monotonic()
        left = ""
        if self._since < step < self._total:
            seconds = (self._spoken - self._began) / (step - self._since) * (self._total - step)
            left = f"about {about_time(seconds)} left"
        self.say(" ".join(filter(None, (f"step {step}/{self._total}", text, left))))


def in_words(figures: Mapping[str, Any]) -> list[str]:
    """The figures of a validation, without when it was; accuracies in per cent."""
    shares = {"top1": "top-1", "top5": "top-5"}
    return [f"{shares[name]} {value:.1%}".replace("%", " %") if name in shares else f"{name} {value:.4g}"
            for name, value in figures.items() if name not in ("kind", "step", "epoch")]
