"""Odd images: a right answer or a clear error, and 4096×4096 in under 3 GB.

    python benchmarks/limits.py

Every case runs in a process of its own, whose peak memory the operating system reports.
"""

import resource
import sys
import time
from multiprocessing import get_context

import numpy as np
import torch
from provenance import arguments, launch, print_provenance
from skimage.measure import label as connected_components
from torch import Tensor

import spit

SEED = 0


def noise(height: int, width: int) -> Tensor:
    """A photo-like picture: noise over smooth shading."""
    generator = np.random.default_rng(SEED)
    shading = np.add.outer(np.linspace(0, 120, height), np.linspace(0, 100, width))[..., None]
    pixels = shading + generator.integers(0, 35, (height, width, 3))
    return torch.from_numpy(pixels.astype(np.uint8)).movedim(-1, 0)


CASES = {
    "1×1": lambda: noise(1, 1),
    "1×500": lambda: noise(1, 500),
    "500×1": lambda: noise(500, 1),
    "flat 224×224": lambda: torch.full((3, 224, 224), 128, dtype=torch.uint8),
    "all NaN": lambda: torch.full((3, 64, 64), torch.nan),
    "mean/std floats": lambda: torch.linspace(-2.1, 2.6, 3 * 64 * 64).view(3, 64, 64),
    "no pixels": lambda: torch.zeros(3, 0, 64),
    "4096×4096": lambda: noise(4096, 4096),
}


def main() -> None:
    arguments(__doc__).parse_args()
    print_provenance("made by this script", SEED)
    context = get_context("spawn")
    for case in CASES:
        process = context.Process(target=run, args=(case,))
        process.start()
        process.join()
        if process.exitcode != 0:
            raise SystemExit(f"{case}: the process died with exit code {process.exitcode}")


def run(case: str) -> None:
    image = CASES[case]()
    tokenizers = {
        "superpixels": spit.SuperpixelTokenizer(),
        "voronoi": spit.VoronoiTokenizer(),
        "patches": spit.PatchTokenizer(),
    }
    for name, tokenizer in tokenizers.items():
        start = time.perf_counter()
        try:
            partition = tokenizer(image)
        except ValueError as error:
            print(f"{case:16s} {name:12s} ValueError: {error}", flush=True)
            continue
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "linux" else 2**30)
        labels = partition.labels[0].numpy()
        count = int(partition.counts[0])
        right = labels.max() + 1 == count and int(connected_components(labels + 1, connectivity=1).max()) == count
        verdict = "complete and connected" if right else "WRONG"
        print(f"{case:16s} {name:12s} {count} regions, {verdict}, {seconds:.2f} s, peak {peak:.2f} GiB", flush=True)


if __name__ == "__main__":
    launch(main)
