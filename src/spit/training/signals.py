"""A request to stop, kept until the end of a step."""

import signal
import threading
from types import FrameType
from typing import Any


class StopSignals:
    """A context in which SIGTERM and Ctrl-C set ``raised``; a second Ctrl-C interrupts at once.

    Outside the main thread, where Python has no signals, it does nothing.
    """

    def __init__(self) -> None:
        self.raised = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.raised and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.raised = True
