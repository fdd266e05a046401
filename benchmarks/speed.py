"""How fast is the CPU tokenizer? One thread, 321×481, beside OpenCV's SEEDS and scikit-image's SLIC.

    python benchmarks/speed.py

All methods see the same images in turn within one run, at a like count; figures are the median of
the per-image best of several rounds. Then the same work in two processes at once. Bars: at least as
fast as SEEDS, 8 times as fast as SLIC, two processes twice the images. Goal: a third of SEEDS.
"""

import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import cv2
import numpy as np
import torch
from provenance import arguments, bsds_images, launch, print_provenance
from rich.progress import track
from skimage.segmentation import slic
from torch import Tensor

import spit
from spit.arrays import SWEEPS

SEEDS_REQUEST, SLIC_REQUEST = 700, 750  # what they must be asked for to give about 600 regions
Method = Callable[[Tensor], np.ndarray]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", type=int, default=40, help="how many of the 200 images")
    parser.add_argument("--rounds", type=int, default=5, help="the best of this many is each image's time")
    args = parser.parse_args()
    paths = bsds_images(args.shared)[:: max(200 // args.images, 1)][: args.images]
    print_provenance(f"BSDS500 test, {len(paths)} images of 321×481 or 481×321")
    _one_thread()
    images = [spit.load_image(path) for path in paths]
    methods: dict[str, Method] = {
        "spit superpixels": superpixels,
        "spit superpixels, refine=1": lambda image: superpixels(image, 1),
        "spit superpixels, refine=3": lambda image: superpixels(image, 3),
        "spit.superpixels(n=600, refine=0)": lambda image: best_superpixels(image, 0),
        "spit.superpixels(n=600)": best_superpixels,
        "OpenCV SEEDS, as in its sample": seeds,
        "OpenCV SEEDS, fewest levels": lambda image: seeds(image, levels=2),
        "scikit-image SLIC": slics,
    }
    times = {name: np.full(len(images), np.inf) for name in methods}
    counts = {name: np.zeros(len(images)) for name in methods}
    for method in methods.values():
        method(images[0])  # compiled before the clock starts
    for number in track(range(args.rounds), "rounds"):
        for i, image in enumerate(images):
            for name, method in methods.items():
                if number > 0 and name == "scikit-image SLIC":
                    continue  # a quarter of a second each; once is enough
                start = time.perf_counter()
                labels = method(image)
                times[name][i] = min(times[name][i], time.perf_counter() - start)
                counts[name][i] = len(np.unique(labels))
    ours = np.median(times["spit superpixels"])
    print(f"{'one thread':34s} {'ms':>8s} {'regions':>8s} {'× ours':>7s}")
    for name in methods:
        median = np.median(times[name])
        print(f"{name:34s} {1000 * median:8.2f} {counts[name].mean():8.0f} {median / ours:7.2f}")
    # In turn, the best of three each: on a shared machine a neighbour can slow either.
    rates = [[throughput(work, paths, processes) for work in (_tokenize, _count) for processes in (1, 2)]
             for _ in range(3)]
    single, double, one_loop, two_loops = (max(rate) for rate in zip(*rates, strict=True))
    print(f"\nprocesses: 1 gives {single:.1f} images/s, 2 give {double:.1f} ({double / single:.2f} times as many; "
          f"a loop of plain arithmetic, {two_loops / one_loop:.2f} times)")


def superpixels(image: Tensor, refine: int = 0) -> np.ndarray:
    return spit.SuperpixelTokenizer(refine=refine)(image).labels[0].numpy()


def best_superpixels(image: Tensor, refine: int = SWEEPS) -> np.ndarray:
    return spit.superpixels(image.movedim(0, -1).numpy(), n=600, refine=refine)


def seeds(image: Tensor, levels: int = 4) -> np.ndarray:
    hsv = cv2.cvtColor(np.ascontiguousarray(image.movedim(0, -1)), cv2.COLOR_RGB2HSV)
    height, width, channels = hsv.shape
    method = cv2.ximgproc.createSuperpixelSEEDS(width, height, channels, SEEDS_REQUEST, levels, 2, 5)
    method.iterate(hsv, 4)
    return method.getLabels()


def slics(image: Tensor) -> np.ndarray:
    return slic(image.movedim(0, -1).numpy(), n_segments=SLIC_REQUEST, start_label=0)


def throughput(work: Callable[..., None], paths: list[Path], processes: int) -> float:
    """What all processes together do in a second."""
    context = get_context("spawn")
    barrier = context.Barrier(processes)
    results = context.Queue()
    workers = [context.Process(target=work, args=(paths, barrier, results)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    rates = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    return sum(rates)


def _count(paths: list[Path], barrier, results) -> None:
    """What the machine's second core is worth: arithmetic that needs no memory."""
    barrier.wait()
    start = time.perf_counter()
    loops = 0
    while time.perf_counter() < start + 2:
        sum(i * i for i in range(10_000))
        loops += 1
    results.put(loops / (time.perf_counter() - start))


def _tokenize(paths: list[Path], barrier, results) -> None:
    _one_thread()
    images = [spit.load_image(path) for path in paths]
    superpixels(images[0])
    barrier.wait()
    start = time.perf_counter()
    rounds = 10
    for _ in range(rounds):
        for image in images:
            superpixels(image)
    seconds = time.perf_counter() - start
    results.put(rounds * len(images) / seconds)


def _one_thread() -> None:
    torch.set_num_threads(1)
    cv2.setNumThreads(1)


if __name__ == "__main__":
    launch(main)
