"""A run of training on stderr: a bar on a terminal, plain lines elsewhere."""

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any

from rich.console import Console

from spit.cli.console import Say, about_time, waiting
from spit.training.journal import Listener

SILENCE = 30  # seconds between lines at most if stderr is no terminal


@contextmanager
def watching(speaks: bool) -> Iterator[Listener]:
    """A listener that shows a run, and spit's warnings beside it. Only one process speaks."""
    logger, warnings = logging.getLogger("spit"), logging.StreamHandler() if speaks else logging.NullHandler()
    warnings.setFormatter(logging.Formatter("spit: %(message)s"))
    logger.addHandler(warnings)
    try:
        if not speaks:
            yield Listener()
            return
        with waiting("Training", None, patience=inf) as show:
            yield Watcher(show)
    finally:
        logger.removeHandler(warnings)


class Watcher(Listener):
    """Shows what a run does and how long it will take."""

    def __init__(self, show: Say) -> None:
        self._show, self._lines = show, not Console(stderr=True).is_terminal
        self._total = self._first = self._since = 0
        self._began = self._spoken = 0.0

    def begin(self, step: int, total: int) -> None:
        self._total, self._first, self._since = total, step, step
        self._began = self._spoken = time.monotonic()
        self._show(done=step, total=total)

    def advance(self, step: int) -> None:
        self._show(done=step)
        one = step == self._first + 1
        if self._lines and (one or time.monotonic() - self._spoken >= SILENCE):
            self._line(step, "")
        if one:  # which may compile: what is left is estimated from the next ones
            self._began, self._since = time.monotonic(), step

    def figures(self, line: Mapping[str, Any]) -> None:
        training = line["kind"] == "train"
        if training:
            speed = line["images_per_second"]
            text = (f"loss {line.get('loss', float('nan')):.4f} lr {line['lr']:.2e} "
                    f"{speed:.{0 if speed >= 10 else 1}f} im/s")
            self._show(text)
        else:
            text = "validation " + " ".join(in_words(line))
        if not training or self._lines:
            self._line(line["step"], text)

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

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
