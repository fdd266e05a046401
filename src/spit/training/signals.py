"""A request to stop, kept until the loop has a moment for it."""

import signal
import threading
from types import FrameType
from typing import Any


class StopSignals:
    """Within it, SIGTERM and Ctrl-C raise a flag; a second Ctrl-C stops at once.

    Outside the main thread, where Python has no signals, the flag stays down.
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
