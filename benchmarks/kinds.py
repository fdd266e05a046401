"""Superpixels of images that are no photos, beside SLIC's at the same actual count.

    python benchmarks/kinds.py [--kind text,chart] [--peers]

Twelve kinds of three images each: flat, quadrants, disks, screenshots, text, charts, cells on dark ground, X-rays,
satellite bands, noise, gradients, stripes. SLIC is asked for n = 4, 50 and 200; spit for as many 4-connected regions as
SLIC then gives. Squared errors are a pixel's, over all bands, in 8-bit steps. SLIC is run at its default compactness,
10, and at 0.1, 1 and 100, since its docstring advises to try; "worst" is the largest ratio of squared errors of all.

Bars: count exact and regions connected; squared error at most 1.1 times SLIC's; no region above 20 times the median
where SLIC has none; at most 3 times a photo's time.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import torch
from comparison.methods import METHODS, Method, choose_methods
from comparison.pictures import KINDS, SEED, Picture, photo
from comparison.workers import open_workers
from numpy.typing import NDArray
from provenance import arguments, launch, print_provenance
from skimage.segmentation import slic

import spit
from spit.errors import SpitError
from spit.evaluation.superpixels import connected_regions

COUNTS = (4, 50, 200)
COMPACTNESS = (10.0, 0.1, 1.0, 100.0)  # SLIC's, its default first
PEERS = ("felzenszwalb", "watershed", "seeds", "opencv-slic", "lsc")
ERROR, SPREAD, SLOW = 1.1, 20.0, 3.0
ROUNDING = 1e-9  # of squared steps a pixel
Labels = NDArray[np.int64]
Task = tuple[str, float, NDArray[np.uint8]]


@dataclass(frozen=True)
class Row:
    """An image at one n.

    Attributes:
        title: of the image, and n.
        exact: whether ours has as many labels as asked for, and as many 4-connected regions.
        ratio: squared error ÷ that of SLIC at its default.
        worst: the same, the largest at any of its compactnesses.
        spread: largest region ÷ median.
        slic_spread: the same of SLIC at its default.
        time: ÷ that of a photo of the same shape.
    """

    title: str
    exact: bool
    ratio: float
    worst: float
    spread: float
    slic_spread: float
    time: float

    def failures(self) -> list[str]:
        """The bars that do not hold."""
        return [bar for bar, held in BARS.items() if not held(self)]


BARS: dict[str, Callable[[Row], bool]] = {
    "count exact, regions connected": lambda row: row.exact,
    f"squared error at most {ERROR} × SLIC's": lambda row: row.ratio <= ERROR,
    "and at any compactness of SLIC's": lambda row: row.worst <= ERROR,
    f"none above {SPREAD:.0f} × the median": lambda row: row.spread <= SPREAD or row.slic_spread > SPREAD,
    f"at most {SLOW:.0f} × a photo's time": lambda row: row.time <= SLOW}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--kind", action="append", default=[], help=f"of {', '.join(KINDS)}; by default all")
    parser.add_argument("--peers", action="store_true", help="also beside other methods, each at the count it gives")
    parser.add_argument("--runs", type=int, default=5, help="the least of so many is the time")
    args = parser.parse_args()
    names = [name for given in args.kind for name in given.split(",")] or list(KINDS)
    if unknown := [name for name in names if name not in KINDS]:
        parser.error(f"expected a kind of {', '.join(KINDS)}, got {unknown[0]}")
    peers = choose_methods(PEERS) if args.peers else []
    print_provenance("made by this script, and samples in scikit-image's wheel", SEED)
    torch.set_num_threads(1)
    print(f"{'':29s}{'n':>4s}{'count':>6s}{'spit':>11s}{'SLIC':>11s}{'ratio':>8s}{'worst':>8s}"
          f"{'least/median/most':>20s}{'SLIC':>20s}{'time':>6s}")
    rows = [row for name in names for image, picture in KINDS[name]().items()
            for row in measure(f"{name}: {image}", picture, args.runs)]
    print()
    for bar, held in BARS.items():
        _print_bar(bar, len(rows), [row.title for row in rows if not held(row)])
    if peers:
        compare(names, peers)


def measure(title: str, picture: Picture, runs: int) -> list[Row]:
    """Print the rows of one image."""
    axis = None if picture.ndim == 2 else -1

    @cache
    def ours(count: int) -> Labels:
        return np.asarray(spit.superpixels(picture, count, channel_axis=axis), np.int64)

    rows = []
    for n in COUNTS:
        theirs = [connected_regions(slic(picture, n, compactness, channel_axis=axis)) for compactness in COMPACTNESS]
        counts, errors = [int(labels.max()) + 1 for labels in theirs], [squared_error(picture, own) for own in theirs]
        own = [squared_error(picture, connected_regions(ours(count))) for count in counts]
        ratios = [_ratio(*pair) for pair in zip(own, errors, strict=True)]
        given, count = ours(counts[0]), counts[0]
        exact = len(np.unique(given)) == int(given.max()) == int(connected_regions(given).max()) + 1 == count
        sizes, slic_sizes = _sizes(connected_regions(given)), _sizes(theirs[0])
        row = Row(f"{title} at {n}", exact, ratios[0], max(ratios), sizes[2] / sizes[1], slic_sizes[2] / slic_sizes[1],
                  _slowness(picture, count, axis, runs))
        rows.append(row)
        print(f"{title:29s}{n:4d}{count:6d}{own[0]:11.3f}{errors[0]:11.3f}{row.ratio:8.3f}{row.worst:8.3f}"
              f"{_joined(sizes):>20s}{_joined(slic_sizes):>20s}{row.time:6.2f}"
              f"  {'NOT: ' if row.failures() else ''}{'; '.join(row.failures())}", flush=True)
    return rows


def compare(names: list[str], peers: list[Method]) -> None:
    """Print our squared error ÷ that of each method at the count that it gives; its count is in brackets.

    Each is set to about n as on a photo. They take colours of 8 bits: a grey image is repeated, and of more bands every
    method gets three.
    """
    images = {f"{name}: {image}": _colors(picture) for name in names for image, picture in KINDS[name]().items()}
    columns = [list(_regions(method, [(method.name, method.near(method.guess(n, colors[..., 0].size)), colors)
                                      for colors in images.values() for n in COUNTS])) for method in peers]
    print(f"\n{'squared error ÷':29s}{'n':>4s}" + "".join(f"{method.name:>20s}" for method in peers))
    worse = []
    for (title, n), row in zip(product(images, COUNTS), zip(*columns, strict=True), strict=True):
        line = f"{title:29s}{n:4d}"
        for method, theirs in zip(peers, row, strict=True):
            ratio, count = _beside(images[title], theirs)
            line += f"{'crash':>20s}" if count == 0 else f"{ratio:11.3f} ({count:6d})"
            worse += [f"{title} at {n} beside {method.name}"] * (ratio > ERROR)
        print(line, flush=True)
    _print_bar(f"squared error at most {ERROR} × every method's", len(images) * len(COUNTS) * len(peers), worse)


def _colors(picture: Picture) -> NDArray[np.uint8]:
    colors = np.atleast_3d(picture)[..., [0, 0, 0] if picture.ndim == 2 else [0, 1, 2]]
    return np.ascontiguousarray(colors // 16 if colors.dtype == np.uint16 else colors, np.uint8)


def _regions(method: Method, tasks: list[Task]) -> Iterator[Labels | None]:
    """The regions of every image; None if the method ended its process, as SEEDS does for some sizes."""
    done = 0
    while done < len(tasks):
        try:
            with open_workers(1) as workers, closing(workers(segment, tasks[done:])) as found:
                for regions in found:
                    done += 1
                    yield regions
        except SpitError:
            done += 1
            yield None


def segment(task: Task) -> Labels:
    """The 4-connected regions of a method, by name and parameter."""
    name, parameter, colors = task
    return connected_regions(METHODS[name].segment(colors, parameter))


def _beside(colors: NDArray[np.uint8], theirs: Labels | None) -> tuple[float, int]:
    """Our squared error ÷ theirs at their count, and the count."""
    if theirs is None:
        return 0.0, 0
    count = int(theirs.max()) + 1
    own = connected_regions(spit.superpixels(colors, count))
    return _ratio(squared_error(colors, own), squared_error(colors, theirs)), count


def _print_bar(bar: str, cases: int, bad: list[str]) -> None:
    print(f"{'NOT held' if bad else 'held    '}  {bar}: {cases - len(bad)} of {cases}"
          + (f"; not {', '.join(bad)}" if bad else ""))


def squared_error(picture: Picture, labels: Labels) -> float:
    """Mean squared distance of pixels to the mean of their region."""
    flat, values = labels.ravel(), picture.reshape(labels.size, -1).astype(float)
    sizes = np.maximum(np.bincount(flat), 1)
    return sum(float(((band - (np.bincount(flat, band) / sizes)[flat]) ** 2).mean()) for band in values.T)


def _ratio(own: float, other: float) -> float:
    """Their ratio; 1 if both are 0 but for rounding."""
    return 1.0 if own <= other + ROUNDING and other <= ROUNDING else own / other if other > 0 else np.inf


def _sizes(labels: Labels) -> tuple[int, int, int]:
    """The pixels of the least, the median and the largest region."""
    sizes = np.sort(np.bincount(labels.ravel()))
    return int(sizes[0]), int(np.median(sizes)), int(sizes[-1])


def _joined(sizes: tuple[int, int, int]) -> str:
    return "/".join(map(str, sizes))


def _slowness(picture: Picture, count: int, axis: int | None, runs: int) -> float:
    """Time ÷ that of a photo of the same shape, in turns, the least of several runs."""
    least = [np.inf, np.inf]
    for _ in range(runs):
        for k, image in enumerate((picture, photo(picture.shape).astype(picture.dtype))):
            start = time.process_time()
            spit.superpixels(image, count, channel_axis=axis)
            least[k] = min(least[k], time.process_time() - start)
    return least[0] / least[1]


if __name__ == "__main__":
    launch(main)
