"""How long does a fresh install take to answer on a CPU, and what does a second thread bring?

    python benchmarks/cpu.py

The first table starts Python with an empty numba cache and waits for one answer about a photo of 224²: imports, the
call, and what it compiles. It also says when the process in the background has compiled everything, and what the same
program takes then. The second has batches of photos of 256² on one and on two threads in turn, and as a control a
compiled loop of plain arithmetic. Bars: 5 s, 1.8 times.
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

START = """
import numpy as np, torch, spit
pixels = np.load({photo!r})
image = torch.from_numpy(pixels)
{code}
print("answer", flush=True)
"""
PROGRAMS = {
    "spit.superpixels(photo)": "spit.superpixels(pixels.transpose(1, 2, 0))",
    "SuperpixelTokenizer()(image)": "spit.SuperpixelTokenizer()(image)",
    "τ and φ": "spit.FeatureExtractor()(image, spit.SuperpixelTokenizer()(image))",
    "spit.load('spit_tiny_16')(image)": "spit.load('spit_tiny_16', device='cpu')(image).top(5)",
}
BATCH, SIZE = 32, 256
FIRST_BAR, THREADS_BAR = 5.0, 1.8
COMPILED = 120  # seconds to wait for the background


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of each program")
    parser.add_argument("--rounds", type=int, default=15, help="of one and two threads in turn")
    args = parser.parse_args()
    print_provenance("photos of scikit-image")
    images = photo_batch(sample_photos(), BATCH, SIZE, SIZE)
    print(f"{'first answer of a fresh install':36s}{'s, least':>10s}{'median':>10s}{'compiled':>10s}{'then':>10s}")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        photo = Path(folder, "photo.npy")
        np.save(photo, images[0, :, :224, :224].numpy())
        for name, code in PROGRAMS.items():
            rows = np.array([first_answer(START.format(photo=str(photo), code=code)) for _ in range(args.runs)])
            worst = max(worst, rows[:, 0].min())
            median = np.median(rows[:, 0])
            print(f"{name:36s}{rows[:, 0].min():10.2f}{median:10.2f}{rows[:, 1].min():10.1f}{rows[:, 2].min():10.2f}",
                  flush=True)
    print(f"the slowest takes {worst:.1f} s (bar: {FIRST_BAR:.0f})\n")

    one, two = (Threads(count, images) for count in (1, 2))
    print(f"{f'{BATCH} photos of {SIZE}²':36s}{'1 thread':>10s}{'2 threads':>10s}{'faster by':>10s}{'median':>10s}")
    for name in one.work:
        times = np.array([[work.seconds(name) for work in (one, two)] for _ in range(args.rounds)])
        best, ratio = times.min(0), np.median(times[:, 0] / times[:, 1])
        print(f"{name:36s}{1000 * best[0]:7.1f} ms{1000 * best[1]:7.1f} ms{best[0] / best[1]:10.2f}{ratio:10.2f}",
              flush=True)
    print(f"labels are {'equal' if torch.equal(one.labels, two.labels) else 'NOT EQUAL'} (bar: {THREADS_BAR})")


def first_answer(program: str) -> tuple[float, float, float]:
    """Seconds from the start of Python to the answer, with an empty cache; to the end of compilation; and after it."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        first = answer(program, folder)
        while not any(Path(folder).rglob("spit-*.compiled")) and time.perf_counter() - start < COMPILED:
            time.sleep(0.1)
        compiled = time.perf_counter() - start
        time.sleep(0.5)
        return first, compiled, answer(program, folder)


def answer(program: str, cache: str) -> float:
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "NUMBA_CACHE_DIR": cache}) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        spent = time.perf_counter() - start
    if line.strip() != "answer":
        raise spit.SpitError("the program failed, see above")
    return spent


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
