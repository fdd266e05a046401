"""``--workers``: processes that share the images of a run."""

import os
import pickle
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from subprocess import DEVNULL, Popen

from spit.cli.console import reason
from spit.cli.inputs import Document, Input
from spit.errors import SpitError
from spit.interruption import stoppable

Work = Callable[[Input, Callable[[str], None]], Document]


def work_apart(work: Work, items: Iterable[Input], count: int) -> Iterator[tuple[Input, Document | str]]:
    """Answer images in ``count`` processes, which share the cores, in the order in which they are done.

    The processes have ended when this ends; a pool of the standard library would leave its resource tracker.

    Args:
        work: can be pickled.

    Yields:
        An image, and its document or the reason why there is none.

    Raises:
        SpitError: a process was killed.
    """
    given = pickle.dumps(work)  # by value: through a pipe, torch hands tensors over in shared memory
    items = iter(items)
    first = [*islice(items, count)]
    with ExitStack() as stack:
        busy = {_start(stack, max(1, (os.cpu_count() or 1) // count)): item for item in first}
        for pipe, item in busy.items():
            _send(pipe, given, item)
        while busy:
            for pipe in {*busy}.intersection(wait([*busy])):
                try:
                    answer = pipe.recv()
                except (EOFError, OSError):
                    raise SpitError("a worker process was killed, as happens if memory is short; the same command "
                                    "continues with the remaining images, and fewer --workers need less") from None
                if isinstance(answer, Exception):
                    raise answer
                yield busy.pop(pipe), answer
                for item in islice(items, 1):
                    busy[pipe] = item
                    _send(pipe, item)


def _start(stack: ExitStack, threads: int) -> Connection:
    """A pipe to a new process, which ends when the stack closes the pipe; Ctrl-C on the terminal does not reach it."""
    pipe, other = Pipe()
    begin = f"from spit.cli.workers import serve; serve({other.fileno()}, {threads})"
    with other:
        process = Popen([sys.executable, "-P", "-c", f"import sys; sys.path[:] = {sys.path!r}; {begin}"], stdin=DEVNULL,
                        pass_fds=[other.fileno()], process_group=0)
    stack.callback(process.wait)
    return stack.enter_context(pipe)


def _send(pipe: Connection, *objects: object) -> None:
    with suppress(OSError):  # the process was killed, as reading from the pipe will tell
        for one in objects:
            pipe.send(one)


def serve(descriptor: int, threads: int) -> None:
    """In a worker process: answer images until the pipe is closed, as it also is when the parent has been killed."""
    import torch

    def check() -> None:
        if pipe.poll():  # at an image, when nothing is sent: the pipe is closed
            raise SystemExit

    warnings.filterwarnings("ignore", module="PIL")  # as in the parent
    torch.set_num_threads(threads)
    with Connection(descriptor) as pipe, stoppable(check), suppress(EOFError, OSError):
        work: Work = pickle.loads(pipe.recv())
        while True:
            item = pipe.recv()
            try:
                answer: Document | str | Exception = work(item, lambda _: None)
            except (SpitError, ValueError) as error:
                answer = reason(error)
            except Exception as error:
                error.add_note(traceback.format_exc())
                answer = error
            pipe.send(answer)
