"""What two threads gain inside one large photo: ``spit.superpixels`` on two threads beside one.

    python benchmarks/threads.py [--megapixels 12] [--repeats 3]

The photo is the cat of ``benchmarks/tiled.py``, and has 200 regions a megapixel. Each run is a process of its own, by
turns; a figure is the shortest of the repeats, of which the first may compile loops. The bar is 1.6 times as fast on
two threads as on one.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from provenance import arguments, launch, print_provenance
from tiled import make_photo

BAR = 1.6
WORK = """
import sys, time
import numpy as np, spit
photo, n, options = np.load("photo.npy"), int(sys.argv[1]), {"refine": int(sys.argv[2])} if sys.argv[2] else {}
spit.superpixels(photo[:512, :512], 600, **options)  # compiles
start = time.perf_counter()
spit.superpixels(photo, n, **options)
print(time.perf_counter() - start)
"""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--megapixels", type=float, default=12.0, help="size of the photo")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each kind")
    args = parser.parse_args()
    print_provenance("scikit-image's cat, mirrored, with noise", seed=0)
    with tempfile.TemporaryDirectory() as folder:
        make_photo(args.megapixels, Path(folder) / "photo.npy")
        print(f"{'refine':>8s} {'1 thread':>9s} {'2 threads':>9s} {'ratio':>6s}")
        for refine in ("", "1", "0"):
            runs = [[_seconds(folder, int(200 * args.megapixels), refine, threads) for threads in (1, 2)]
                    for _ in range(args.repeats)]
            one, two = map(min, zip(*runs, strict=True))
            bar = f"  bar {BAR:g}: {'held' if one >= BAR * two else 'NOT held'}" if refine == "" else ""
            print(f"{refine or 'default':>8s} {one:8.2f}s {two:8.2f}s {one / two:6.2f}{bar}", flush=True)


def _seconds(folder: str, n: int, refine: str, threads: int) -> float:
    done = subprocess.run([sys.executable, "-c", WORK, str(n), refine], cwd=folder, check=True, stdout=subprocess.PIPE,
                          text=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    return float(done.stdout)


if __name__ == "__main__":
    launch(main)
