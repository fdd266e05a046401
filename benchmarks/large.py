"""Time and memory of ``spit segment`` on large photos, from a fresh process to the files.

    python benchmarks/large.py [--megapixels 12 50]

The photo is scikit-image's cat, enlarged, with noise of a sensor (standard deviation 4, seed 0), as a JPEG. Wall time
depends on what else the machine does; the CPU's own seconds hardly do. Memory is the peak of the process.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from provenance import arguments, launch, print_provenance
from skimage.data import chelsea


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--megapixels", type=float, nargs="+", default=[12.0, 50.0], help="sizes of the photo")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of the process")
    args = parser.parse_args()
    print_provenance("scikit-image's cat, enlarged", seed=0)
    print(f"{'megapixels':>10s} {'wall s':>8s} {'CPU s':>8s} {'GB':>6s}")
    for megapixels in sorted(args.megapixels):  # the peak is that of the largest process so far
        with tempfile.TemporaryDirectory() as folder:
            photo = Path(folder) / "photo.jpg"
            make_photo(megapixels).save(photo, quality=92)
            before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([sys.executable, "-m", "spit.cli", "segment", str(photo), "-o", folder, "--device", "cpu",
                            "--json"], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "OMP_NUM_THREADS": str(args.threads)})
            wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{megapixels:10g} {wall:8.1f} {used:8.1f} {after.ru_maxrss / 2**20:6.2f}", flush=True)


def make_photo(megapixels: float) -> Image.Image:
    """The cat at 4:3 and so many megapixels, a strip at a time."""
    height = round((megapixels * 0.75e6) ** 0.5)
    pixels = np.array(Image.fromarray(chelsea()).resize((height * 4 // 3, height), Image.Resampling.BICUBIC))
    random = np.random.default_rng(0)
    for strip in np.array_split(pixels, max(1, height // 64)):
        strip[:] = np.clip(np.rint(strip + random.normal(0, 4, strip.shape)), 0, 255)
    return Image.fromarray(pixels)


if __name__ == "__main__":
    launch(main)
