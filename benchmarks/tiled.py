"""Memory and time of spit.superpixels_tiled beside spit.superpixels, on photos up to 100 megapixels.

    python benchmarks/tiled.py [--megapixels 4 25 100] [--tile 2048] [--whole 4 25]

The photo is scikit-image's cat, mirrored over and over, with noise of a sensor (standard deviation 4, seed 0), as a
.npy file that is mapped. Memory is the peak of a process of its own, which starts with what its imports take; labels
go to a .npy file. Wall time depends on what else the machine does. The bar is 4 GB for 100 megapixels.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from provenance import arguments, launch, print_provenance
from skimage.data import chelsea

BAR = 4.0  # GB at 100 megapixels
WORK = """
import resource, sys, time
import numpy as np, spit
spit.superpixels_tiled(np.zeros((64, 64, 3), np.uint8), 9)  # compiles
start = time.perf_counter()
if sys.argv[1] == "tiled":
    spit.superpixels_tiled("photo.npy", int(sys.argv[2]), tile=int(sys.argv[3]), out="tiled.npy")
else:
    np.save("whole.npy", spit.superpixels(np.load("photo.npy"), int(sys.argv[2]), refine=0))
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--megapixels", type=float, nargs="+", default=[4.0, 25.0, 100.0], help="sizes of the photo")
    parser.add_argument("--whole", type=float, nargs="*", default=[4.0, 25.0], help="sizes also labelled at once")
    parser.add_argument("--tile", type=int, default=2048, help="side of a tile")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of a process")
    args = parser.parse_args()
    print_provenance("scikit-image's cat, mirrored, with noise", seed=0)
    print(f"{'megapixels':>10s} {'regions':>8s} {'':8s} {'wall s':>7s} {'GB':>6s}")
    for megapixels in args.megapixels:
        with tempfile.TemporaryDirectory() as folder:
            make_photo(megapixels, Path(folder) / "photo.npy")
            n, equal = int(200 * megapixels), ""
            for kind in ("tiled", "whole") if megapixels in args.whole else ("tiled",):
                command = [sys.executable, "-c", WORK, kind, str(n), str(args.tile)]
                done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True,
                                      env={**os.environ, "OMP_NUM_THREADS": str(args.threads)})
                wall, memory = map(float, done.stdout.split())
                if kind == "whole":
                    same = np.array_equal(*(np.load(Path(folder) / f"{one}.npy") for one in ("tiled", "whole")))
                    equal = "  equal labels" if same else "  OTHER LABELS"
                elif megapixels >= 100:
                    equal = f"  bar {BAR:g} GB: {'held' if memory <= BAR else 'NOT held'}"
                print(f"{megapixels:10g} {n:8,d} {kind:8s} {wall:7.1f} {memory:6.2f}{equal}", flush=True)


def make_photo(megapixels: float, path: Path) -> None:
    """Write a photo of 4:3 and so many megapixels, a strip at a time."""
    height = round((megapixels * 0.75e6) ** 0.5)
    cat = chelsea()
    pair = np.concatenate([cat, cat[:, ::-1]], 1)
    square = np.concatenate([pair, pair[::-1]])
    photo = np.lib.format.open_memmap(path, "w+", np.dtype(np.uint8), (height, height * 4 // 3, 3))
    columns, random = np.arange(photo.shape[1]) % square.shape[1], np.random.default_rng(0)
    for first in range(0, height, 64):
        rows = np.arange(first, min(first + 64, height)) % square.shape[0]
        strip = square[rows][:, columns]
        photo[first : first + 64] = np.clip(np.rint(strip + random.normal(0, 4, strip.shape)), 0, 255)
    photo.flush()


if __name__ == "__main__":
    launch(main)
