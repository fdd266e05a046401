"""``--workers``: further processes that run the same command and take images that nobody has claimed.

The claims of :mod:`spit.cli.claims` divide the work, so that a companion that dies leaves its image to the others. What
a companion cannot do is tried, and reported, by the process that started it.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from spit.kernels.concurrency import torch_threads
from spit.options import Options, option

command_line: ContextVar[tuple[str, ...]] = ContextVar("command_line", default=())
COMPANION = "SPIT_COMPANION"  # in the environment of a companion
PATIENCE = 10  # seconds for a companion to end


@dataclass(frozen=True)
class Sharing(Options):
    """How many processes do the work."""

    workers: int = option(0, "Processes that share the work; 0 works in this one", least=0)


def is_companion() -> bool:
    """Whether another process of spit started this one."""
    return COMPANION in os.environ


def received() -> Any:
    """What the process that started this one has told; this one ends when that does."""
    told = json.loads(sys.stdin.readline())

    def watch() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGINT)  # unlike an exit, it removes what is half written,
        time.sleep(PATIENCE)  # but it may wait for threads
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    return told


@contextmanager
def companions(count: int, told: Any) -> Iterator[None]:
    """So many processes beside this one, which share its cores, until the block ends.

    Args:
        told: what :func:`received` gives them, as JSON has it.
    """
    if count < 1 or is_companion():
        yield
        return
    threads = max(1, (os.cpu_count() or 1) // (count + 1))
    environment = {**os.environ, COMPANION: "1", "OMP_NUM_THREADS": str(threads)}
    started: list[subprocess.Popen[str]] = []
    tellers: list[threading.Thread] = []
    try:
        for _ in range(count):
            one = subprocess.Popen([sys.executable, "-m", "spit.cli", *command_line.get()], env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            started.append(one)
            tellers.append(threading.Thread(target=_tell, args=(one, json.dumps(told))))
            tellers[-1].start()
        with torch_threads(threads):
            yield
    finally:
        for one in started:
            one.send_signal(signal.SIGINT)
        for one in started:
            try:
                one.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        for one, teller in zip(started, tellers, strict=True):
            teller.join()
            with suppress(OSError):
                one.stdin.close()  # type: ignore[union-attr]


def _tell(companion: subprocess.Popen[str], text: str) -> None:
    """Write to a companion, which reads when it has started; its stdin stays open."""
    with suppress(OSError):  # it has ended
        companion.stdin.write(f"{text}\n")  # type: ignore[union-attr]
        companion.stdin.flush()  # type: ignore[union-attr]
