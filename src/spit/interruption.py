"""Work that can be stopped from outside: long operations ask between their parts whether to go on.

A thread cannot be stopped from another one. So tokenizers, loops over images and the rounds of cleaning a mask call
:func:`may_stop`, which costs nothing where nobody set a check. Signals stop the main thread: :func:`on_signals`.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

Check = Callable[[], None]
Handler = Callable[[int, FrameType | None], object] | int | None  # as signal.getsignal answers
STOPPED = 130  # the exit code of a shell after an interrupt
_check: ContextVar[Check | None] = ContextVar("check", default=None)


@contextmanager
def stoppable(check: Check) -> Iterator[None]:
    """Call ``check`` between the parts of the work in this block; what it raises ends the work."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def may_stop(*_: object) -> None:
    """A place where work may end; it takes any arguments, so that it can be a hook of a module."""
    check = _check.get()
    if check is not None:
        check()


def leave_to_parent(worker: int = 0) -> None:
    """Start of a worker process: Ctrl-C and SIGTERM, which reach its whole group, are handled by the parent alone.

    A worker of :class:`torch.utils.data.DataLoader` ends with its parent.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def on_signals(handler: Handler, *numbers: signal.Signals) -> Iterator[None]:
    """Handle signals in this block, then as before it, also where a library has replaced the handlers.

    Outside the main thread, where Python has no signals, nothing changes.
    """
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in numbers if main}
    try:
        for number in before:
            signal.signal(number, handler)
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
