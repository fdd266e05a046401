"""Are there images on which spit is slow? Made images of many kinds beside a photo of the same size.

    python benchmarks/cliffs.py --size 512 --size 1024

Each operation is timed on one thread by the processor time it takes, the least of several runs, so that a busy machine
does not matter much. A table shows each as a multiple of the photo's time; its last rows have the worst of each
operation. Bar: 3.
"""

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from provenance import arguments, launch, print_provenance
from skimage import data
from skimage.transform import resize
from torch import Tensor

import spit

SEED = 0
BAR = 3.0
PER_TOKEN = 256  # pixels of a token, by the count law
PATIENCE = 1.0  # seconds; an operation that takes longer is not repeated
Picture = npt.NDArray[np.uint8]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--size", type=int, action="append",
                        help="side of the square images; strips have as many pixels (default: 512 and 1024)")
    parser.add_argument("--runs", type=int, default=5, help="the least of so many is the time")
    args = parser.parse_args()
    print_provenance("made by this script, and scikit-image's astronaut", SEED)
    torch.set_num_threads(1)
    measure(photo(48, 48), 1)  # compiled before the clock starts
    measure(flat(48, 48), 1)
    worst = max(table(height, width, args.runs) for size in args.size or (512, 1024)
                for height, width in ((size, size), (max(size // 8, 1), size * 8)))
    print(f"the worst is {worst:.1f} times a photo's time (bar: {BAR:.0f})")


def table(height: int, width: int, runs: int) -> float:
    """Print the times of one size beside a photo's; the worst ratio."""
    base = measure(photo(height, width), runs)
    print(f"{f'{height}×{width}':14s}" + "".join(f"{name:>14s}" for name in base))
    print(f"{'photo, ms':14s}" + "".join(f"{1000 * seconds:14.1f}" for seconds in base.values()), flush=True)
    ratios = {}
    for kind in KINDS:
        times = measure(kind(height, width), runs)
        ratios[kind.__name__] = {name: times[name] / base[name] for name in base}
        print(f"{kind.__name__:14s}" + "".join(f"{ratio:14.2f}" for ratio in ratios[kind.__name__].values()),
              flush=True)
    slowest = {name: max(ratios, key=lambda kind: ratios[kind][name]) for name in base}
    print(f"{'worst':14s}" + "".join(f"{ratios[slowest[name]][name]:14.2f}" for name in base))
    print(f"{'':14s}" + "".join(f"{slowest[name]:>14s}" for name in base) + "\n")
    return max(max(row.values()) for row in ratios.values())


def measure(picture: Picture, runs: int) -> dict[str, float]:
    """Seconds of each operation."""
    image = torch.from_numpy(picture).movedim(-1, 0).contiguous()
    hierarchy = spit.SuperpixelTokenizer().hierarchy(image)
    pixels = picture.shape[0] * picture.shape[1]
    part = tokens(image, max_tokens=max(pixels // PER_TOKEN, 1))  # φ takes as long as there are tokens
    few, some = min(300, pixels), min(600, pixels)
    operations: dict[str, Callable[[], object]] = {
        "τ": lambda: tokens(image),
        "λ = 0.1": lambda: tokens(image, compactness=0.1),
        "merge": lambda: tokens(image, merge_threshold=0.05),
        "bound 196": lambda: tokens(image, max_tokens=196),
        "1 level, 196": lambda: tokens(image, levels=1, max_tokens=196),
        "refine 3": lambda: tokens(image, refine=3),
        "published": lambda: spit.create_tokenizer("published")(image),
        "n = 600": lambda: spit.superpixels(picture, n=some),
        "at(300)": lambda: hierarchy.at(few),
        "hierarchy": lambda: spit.SuperpixelTokenizer().hierarchy(image),
        "with refine": lambda: spit.SuperpixelTokenizer(refine=3).hierarchy(image),
        "φ": lambda: FEATURES(image, part),
    }
    return {name: seconds(operation, runs) for name, operation in operations.items()}


FEATURES = spit.FeatureExtractor(gradients=True)


def tokens(image: Tensor, **options: object) -> spit.Partition:
    return spit.SuperpixelTokenizer(**options)(image)  # type: ignore[arg-type]


def seconds(operation: Callable[[], object], runs: int) -> float:
    least = np.inf
    for _ in range(runs):
        start = time.thread_time()
        operation()
        least = min(least, time.thread_time() - start)
        if least > PATIENCE:
            break
    return float(least)


def photo(height: int, width: int) -> Picture:
    pixels = 255 * resize(data.astronaut(), (height, width), order=1)
    return np.clip(pixels + draws().normal(0, 2, pixels.shape), 0, 255).astype(np.uint8)


def flat(height: int, width: int) -> Picture:
    return np.full((height, width, 3), 128, np.uint8)


def half_flat(height: int, width: int) -> Picture:
    picture = photo(height, width)
    picture[height // 2 :] = 0
    return picture


def letterbox(height: int, width: int) -> Picture:
    picture = photo(height, width)
    picture[: height // 6] = picture[height - height // 6 :] = 0
    return picture


def cutout(height: int, width: int) -> Picture:
    """A product photo: an object on white."""
    y, x = grid(height, width)
    outside = (2 * y / height - 1) ** 2 + (2 * x / width - 1) ** 2 > 0.5
    return np.where(outside[..., None], np.uint8(255), photo(height, width))


def screenshot(height: int, width: int) -> Picture:
    """A bar, a column and lines of text-like spots on white."""
    picture = np.full((height, width, 3), 255, np.uint8)
    picture[:, : width // 6] = 240
    picture[: height // 16] = (40, 60, 90)
    text = draws().random((height, width)) < 0.35
    y, x = grid(height, width)
    text &= (y % 14 < 9) & (x % 41 < 36) & (y > height // 12) & (x > width // 5) & (x < width * 4 // 5)
    picture[text] = 20
    return picture


def gradient(height: int, width: int) -> Picture:
    return grey(255 * grid(height, width)[1] / width)


def posterized(height: int, width: int) -> Picture:
    return (photo(height, width) // 64 * 64).astype(np.uint8)


def stripes(height: int, width: int) -> Picture:
    return grey(255 * (grid(height, width)[1] // 4 % 2))


def checkerboard(height: int, width: int) -> Picture:
    y, x = grid(height, width)
    return grey(255 * ((y + x) % 2))


def tiles(height: int, width: int) -> Picture:
    y, x = grid(height, width)
    return grey(255 * ((y // 8 + x // 8) % 2))


def spiral(height: int, width: int) -> Picture:
    y, x = grid(height, width)
    y, x = y - height / 2, x - width / 2
    return grey(255 * ((np.hypot(y, x) / 8 - np.arctan2(y, x) / np.pi) % 2 < 1))


def comb(height: int, width: int) -> Picture:
    """One long region: a line that goes up and down all over the image."""
    y, x = grid(height, width)
    turn = np.where(x // 4 % 2 == 1, y >= height - 2, y < 2)
    return grey(255 * ((x % 4 < 2) | turn))


def spots(height: int, width: int) -> Picture:
    return grey(255 * (draws().random((height, width)) < 0.02))


def binary_noise(height: int, width: int) -> Picture:
    return grey(255 * (draws().random((height, width)) < 0.5))


def noise(height: int, width: int) -> Picture:
    return draws().integers(0, 256, (height, width, 3), np.uint8)


def night(height: int, width: int) -> Picture:
    """Few tones: many ties, but no large flat area."""
    return (photo(height, width) // 16).astype(np.uint8)


KINDS = (flat, half_flat, letterbox, cutout, screenshot, gradient, posterized, stripes, checkerboard, tiles, spiral,
         comb, spots, binary_noise, noise, night)


def grid(height: int, width: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    y, x = np.mgrid[:height, :width]
    return y, x


def grey(values: npt.NDArray[np.generic]) -> Picture:
    return values.astype(np.uint8)[..., None].repeat(3, axis=2)


def draws() -> np.random.Generator:
    return np.random.default_rng(SEED)


if __name__ == "__main__":
    launch(main)
