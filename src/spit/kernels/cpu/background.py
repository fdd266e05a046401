"""A fresh install answers at once: plain torch and numpy serve while another process compiles the loops.

They have the same bits (``uncompiled.py``), so nobody can tell who served. The process fills numba's cache, leaves a
stamp there, and ends by itself, also after this one. A lock, which it holds, lets many processes at once start only
one. If it fails, or cannot be started, the calls compile for themselves.
"""

import hashlib
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import llvmlite  # type: ignore[import-untyped]
import llvmlite.binding  # type: ignore[import-untyped]
import numba
import torch

from spit.kernels import numba as loops
from spit.kernels.cpu import features, preprocess, refinement, regions, superpixels, voronoi
from spit.kernels.numba.regions import step
from spit.kernels.rules import SCALE, Rules

SERVED = 2**25
"""Numbers that operations without loops may take in before calls compile for themselves; superpixels of a photo of 224²
have half a million, in three operations."""
ROOT = Path(__file__).parents[3]
COMMAND = "import sys; sys.path.insert(0, sys.argv[1]); from spit.kernels.cpu import background; background.main()"


class _Detached(subprocess.Popen[bytes]):
    def __del__(self) -> None:
        """Without a warning that it still runs: it may outlive this process."""


class Background:
    """Whether the loops are compiled, and the process that does it.

    Args:
        folder: numba's cache; None if there is none, and then SERVED numbers are served without.
    """

    def __init__(self, folder: str | None) -> None:
        self.done = False
        self.started = False
        self.left = SERVED
        self.busy = threading.Lock()
        self.stamp = None if folder is None else Path(folder) / f"spit-{_key()}.compiled"

    def serves(self, numbers: int) -> bool:
        """Whether an operation on so many numbers should run as a compiled loop."""
        if not self.done and self.busy.acquire(blocking=False):  # else another thread's call asks already
            try:
                if self._is_done(numbers):
                    self.done = True
            finally:
                self.busy.release()
        return self.done

    def _is_done(self, numbers: int) -> bool:
        first, self.started = not self.started, True
        self.left -= numbers
        if self.left < 0:  # what is not compiled yet, the calls compile for themselves
            return True
        if self.stamp is None or self.stamp.exists():
            return self.stamp is not None
        try:
            return start(self.stamp) if first else not _locked(self.stamp)  # not locked: it failed
        except OSError:
            return True


def start(stamp: Path) -> bool:
    """Start the process, unless another is at it. False if one runs now, True if none can."""
    if find_spec("fcntl") is None or getattr(sys, "frozen", False) or "python" not in Path(sys.executable or "").name:
        return True
    import fcntl

    with _lock_file(stamp).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if stamp.exists():
            return False
        # The process inherits the open file and with it the lock, until it ends.
        process = _Detached([sys.executable, "-P", "-c", COMMAND, str(ROOT), str(stamp)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                            pass_fds=(lock.fileno(),), env={**os.environ, "OMP_NUM_THREADS": "1"})
    threading.Thread(target=process.wait, daemon=True, name="spit-compiler").start()  # so that it leaves no zombie
    return False


def _lock_file(stamp: Path) -> Path:
    return stamp.with_suffix(".lock")


def _locked(stamp: Path) -> bool:
    import fcntl

    with _lock_file(stamp).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def main() -> None:
    """What the process does, when nobody else needs the processor: torch's threads wait for each other."""
    os.nice(10)
    compile_all()
    stamp = Path(sys.argv[2])
    part = stamp.with_suffix(f".{os.getpid()}")
    part.touch()
    part.replace(stamp)
    os._exit(0)  # at once: nothing here needs to be closed


def compile_all() -> None:
    """Run every loop once on a small image, with the types that tokenizers and φ give them."""
    torch.set_num_threads(1)
    images = (torch.arange(3 * 8 * 8) * 37 % 256).view(1, 3, 8, 8).to(torch.uint8)
    table = (torch.arange(3 * 256).view(3, 256) % SCALE).to(torch.int16)
    colors = preprocess.saturate(preprocess.look_up(images, table), 2 * SCALE)
    colors = preprocess.diffuse(colors, torch.zeros(4 * SCALE + 1, dtype=torch.int32), 4)
    labels, counts = superpixels.superpixel_labels(colors, Rules(levels=2, merge_threshold=0.1, max_tokens=2))
    offsets = torch.cat([counts.new_zeros(1), counts])
    refinement.refine(labels, offsets, images, 1)
    boxes = regions.region_boxes(labels, offsets)
    single = torch.arange(64, dtype=torch.int32).view(8, 8)
    superpixels.between(colors[0], single, None, 3)
    superpixels.between(colors[0], labels[0], None, 1)
    voronoi.nearest_sites(torch.tensor([[[1, 2], [5, 5]]], dtype=torch.int32), 8, 8)
    normal = preprocess.look_up(images, table.float())
    features.region_features(normal, None, features.scharr(images), labels, offsets, boxes, boxes, 4, True, (4, 0.1),
                             (4, 0.1))


def _key() -> str:
    """What the compiled loops depend on: their text, the compiler and the processor."""
    parts = [numba.__version__, llvmlite.__version__, sys.implementation.cache_tag,
             llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()]
    folders = Path(__file__).parent, Path(loops.__file__).parent
    sources = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    return hashlib.sha256("\n".join([*map(str, parts), *(path.read_text() for path in sources)]).encode()
                          ).hexdigest()[:16]


BACKGROUND = Background(step.stats.cache_path)
if hasattr(os, "register_at_fork"):  # a thread that the child does not have may hold the lock
    os.register_at_fork(after_in_child=lambda: setattr(BACKGROUND, "busy", threading.Lock()))
