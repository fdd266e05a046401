"""``--workers``: processes that take images one by one. One that dies loses the image that it was at, and no other."""

import os
import pickle
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from tempfile import NamedTemporaryFile

from spit.cli.inputs import Document, Input
from spit.cli.tracebacks import reason
from spit.errors import SpitError

Work = Callable[[Input, Callable[[str], None]], Document]
GRACE = 10  # seconds for a worker to remove what is half written


def work_apart(work: Work, items: Iterable[Input], count: int) -> Iterator[tuple[Input, Document | str]]:
    """Answer images in ``count`` processes, which share the cores, in the order in which they are done.

    Args:
        work: can be pickled.

    Yields:
        An image, and its document or the reason why there is none.

    Raises:
        OSError: of a full disk and the like.
        RuntimeError: any other error of the work, with the traceback of its process.
    """
    threads = max(1, (os.cpu_count() or 1) // count)
    idle: list[Connection] = []
    busy: dict[Connection, Input] = {}
    processes: dict[Connection, subprocess.Popen[bytes]] = {}
    items = iter(items)
    with NamedTemporaryFile() as file:
        pickle.dump(work, file)
        file.flush()
        try:
            while True:
                while len(busy) < count and (item := next(items, None)) is not None:
                    if not idle:
                        pipe, process = _start(file.name, threads)
                        processes[pipe] = process
                        idle.append(pipe)
                    pipe = idle.pop()
                    busy[pipe] = item
                    with suppress(OSError):  # it has died, as the answer will say
                        pipe.send(item)
                if not busy:
                    return
                ready = wait([*busy])
                for pipe in [pipe for pipe in busy if pipe in ready]:
                    item, answer = busy.pop(pipe), _received(pipe, processes)
                    if pipe in processes:
                        idle.append(pipe)
                    if isinstance(answer, Exception):
                        raise answer
                    yield item, answer
        finally:
            for process in processes.values():
                process.terminate()
            for process in processes.values():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE)
                process.kill()
                process.wait()


def _start(file: str, threads: int) -> tuple[Connection, "subprocess.Popen[bytes]"]:
    """A process that answers what comes through a pipe; Ctrl-C on the terminal does not reach it."""
    pipe, other = Pipe()
    with other:
        process = subprocess.Popen(
            [sys.executable, "-c", f"from spit.cli.workers import serve; serve({other.fileno()}, {file!r}, {threads})"],
            pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    with suppress(OSError):
        pipe.send(sys.path)  # which plugins may be on
    return pipe, process


def _received(pipe: Connection, processes: "dict[Connection, subprocess.Popen[bytes]]") -> Document | str | Exception:
    """What a process answers; one that has died is taken out."""
    try:
        answer: Document | str | Exception = pipe.recv()
    except (EOFError, OSError):
        code = processes.pop(pipe).wait()
        return f"its worker process ended with code {code}; there may be too little memory"
    return answer


def serve(descriptor: int, file: str, threads: int) -> None:
    """Answer images from a pipe until it is closed; the work is pickled in a file."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    warnings.filterwarnings("ignore", module="PIL")  # as in the parent
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):  # the parent has ended, or ends this process
        pipe = Connection(descriptor)
        sys.path[:] = pipe.recv()
        import torch

        torch.set_num_threads(threads)
        with open(file, "rb") as pickled:
            work: Work = pickle.load(pickled)
        while True:
            pipe.send(_answer(work, pipe.recv()))


def _answer(work: Work, item: Input) -> Document | str | Exception:
    try:
        return work(item, lambda _: None)
    except (SpitError, ValueError) as error:
        return reason(error)
    except OSError as error:
        return error
    except Exception:
        return RuntimeError(traceback.format_exc())
