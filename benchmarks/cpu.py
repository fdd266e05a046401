"""How long does a fresh process take to answer on a CPU, and what does a second thread bring?

    python benchmarks/cpu.py

The first table starts Python, asks for one answer about a photo of 224², and ends: with an empty numba cache, and again
with the one that this has filled. Lines without spit show what numpy, numba and its first cached loop take of that. The
second table has batches of photos of 256² on one and on two threads in turn, and as a control a compiled loop of plain
arithmetic; the bar is 1.8 times.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numba import njit
from provenance import arguments, launch, print_provenance
from torch import Tensor

import spit
from spit.bench.photos import photo_batch, sample_photos
from spit.kernels.concurrency import torch_threads
from spit.kernels.numba.threads import for_each_image

LOOP = """
from numba import njit

@njit(cache=True)
def last(values):
    return values[-1]

last(np.arange(5))
"""
NO_SCIPY = "sys.modules['scipy'] = None\n"  # which numba imports at its first loop if it is installed
TENSOR = "import spit, torch; image = torch.from_numpy(photo).movedim(-1, 0)\n"
PROGRAMS = {
    "numpy": "",
    "numba's import": "import numba",
    "a small loop of numba": LOOP,
    "the loop, scipy not installed": NO_SCIPY + LOOP,
    "spit.superpixels(photo)": "import spit; spit.superpixels(photo)",
    "superpixels, scipy not installed": f"{NO_SCIPY}import spit; spit.superpixels(photo)",
    "SuperpixelTokenizer()(image)": f"{TENSOR}spit.SuperpixelTokenizer()(image)",
    "τ and φ": f"{TENSOR}spit.FeatureExtractor()(image, spit.SuperpixelTokenizer()(image))",
    "spit.load('spit_tiny_16')(image)": f"{TENSOR}spit.load('spit_tiny_16', device='cpu')(image).top(5)",
}
BATCH, SIZE, BAR = 32, 256, 1.8


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of each program with an empty cache")
    parser.add_argument("--repeats", type=int, default=5, help="of each program after that")
    parser.add_argument("--rounds", type=int, default=15, help="of one and two threads in turn")
    args = parser.parse_args()
    print_provenance("photos of scikit-image")
    images = photo_batch(sample_photos(), BATCH, SIZE, SIZE)
    print(f"{'a process, least of its runs':36s}{'first, s':>10s}{'CPU, s':>10s}{'then, s':>10s}{'CPU, s':>10s}")
    with tempfile.TemporaryDirectory() as folder:
        photo = Path(folder, "photo.npy")
        np.save(photo, images[0, :, :224, :224].movedim(0, -1).numpy())
        for name, code in PROGRAMS.items():
            best = np.min([first_and_then(code, photo, args.repeats) for _ in range(args.runs)], 0)
            print(f"{name:36s}{best[0]:10.2f}{best[1]:10.2f}{best[2]:10.2f}{best[3]:10.2f}", flush=True)
    print()
    one, two = (Threads(count, images) for count in (1, 2))
    print(f"{f'{BATCH} photos of {SIZE}²':36s}{'1 thread':>10s}{'2 threads':>10s}{'faster by':>10s}{'median':>10s}")
    for name in one.work:
        times = np.array([[work.seconds(name) for work in (one, two)] for _ in range(args.rounds)])
        best, ratio = times.min(0), np.median(times[:, 0] / times[:, 1])
        print(f"{name:36s}{1000 * best[0]:7.1f} ms{1000 * best[1]:7.1f} ms{best[0] / best[1]:10.2f}{ratio:10.2f}",
              flush=True)
    print(f"labels are {'equal' if torch.equal(one.labels, two.labels) else 'NOT EQUAL'} (bar: {BAR})")


def first_and_then(code: str, photo: Path, repeats: int) -> list[float]:
    """Seconds and seconds of CPU time of a process with an empty cache, and the least of some with a full one."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(f"import sys, numpy as np; photo = np.load(sys.argv[1])\n{code}")
        first = answer(program, photo)
        return [*first, *np.min([answer(program, photo) for _ in range(repeats)], 0)]


def answer(program: Path, photo: Path) -> tuple[float, float]:
    """Seconds of a process from start to end, and its seconds of CPU time."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, program, photo], check=True, stdout=subprocess.DEVNULL,
                   env={**variables, "NUMBA_CACHE_DIR": str(program.parent)})
    spent, after = time.perf_counter() - start, os.times()
    return spent, sum(after[2:4]) - sum(before[2:4])


class Threads:
    """Work on a batch with so many threads."""

    def __init__(self, count: int, images: Tensor) -> None:
        self.count = count
        tokenizer, extractor = spit.SuperpixelTokenizer(), spit.FeatureExtractor()
        part = tokenizer(images)
        with torch_threads(count):
            self.labels = tokenizer(images).blocks[0]
        self.work: dict[str, Callable[[], object]] = {
            "τ": lambda: tokenizer(images),
            "τ with 3 sweeps": lambda: spit.SuperpixelTokenizer(refine=3)(images),
            "φ": lambda: extractor(images, part),
            "τ and φ": lambda: extractor(images, tokenizer(images)),
            "control: plain arithmetic": lambda: for_each_image(count_up, list(range(BATCH))),
        }

    def seconds(self, name: str) -> float:
        with torch_threads(self.count):
            start = time.perf_counter()
            self.work[name]()
            return time.perf_counter() - start


@njit(nogil=True)
def count_up(start: int) -> int:
    total = start
    for i in range(4_000_000):
        total ^= i * total
    return total


if __name__ == "__main__":
    launch(main)
