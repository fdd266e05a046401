"""Supervoxels beside scikit-image's slic at the same actual count, and the time of many bands.

    python benchmarks/volumes.py [--count 1000] [--runs 3]

The volume is the nuclei of scikit-image's cells3d, if an earlier download lies in its cache, else nuclei made with a
seed, 60 × 256 × 256 voxels. slic is asked for n supervoxels at its default compactness, 10, and at 0.1; spit, at its
default and at 3, for as many 6-connected regions as slic then gives. Recall is the share of boundary voxels of an Otsu
mask that are boundary voxels of the labels. A ragged partition has a high recall for nothing, so the table also has the
share of all voxels that are boundaries, and right if each region takes the majority in the mask (ASA).

Bars: exact counts, connected; faster than slic; better recall and ASA; time linear in bands, connected and exact.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from comparison.pictures import SEED, field_bands
from numpy.typing import NDArray
from provenance import arguments, launch, print_provenance
from skimage.filters import gaussian, threshold_otsu
from skimage.io import imread
from skimage.measure import label
from skimage.segmentation import find_boundaries, slic

import spit
from spit.kernels.options import TREE_COMPACTNESS

SHAPE = (60, 256, 256)
CACHES = ".cache/scikit-image/*/data/cells3d.tif"
BANDS = (3, 12, 50, 200)
EVEN = (TREE_COMPACTNESS, 3.0)  # compactness: the default, and one with fewer boundaries
LINEAR = 1.25
Array = NDArray[np.generic]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, action="append", help="of supervoxels; by default 200 and 2000")
    parser.add_argument("--side", type=int, default=SHAPE[1], help="of the made volume's planes")
    parser.add_argument("--runs", type=int, default=3, help="the least of so many is the time")
    args = parser.parse_args()
    torch.set_num_threads(1)
    cached = next(Path.home().glob(CACHES), None)
    volume = made_nuclei((*SHAPE[:1], args.side, args.side)) if cached is None else imread(cached)[:, 1]
    print_provenance(f"{'made nuclei' if cached is None else 'cells3d'}, {' × '.join(map(str, volume.shape))} "
                     f"{volume.dtype}; made fields of many bands", SEED)
    _print_bars([*compare(volume, args.count or [200, 2000], args.runs), *time_bands(args.side, args.runs)])


def made_nuclei(shape: tuple[int, ...], density: float = 1.5e-5) -> NDArray[np.uint8]:
    """Textured ellipsoids on dark ground, blurred, with photon noise."""
    draws, (z, y, x) = np.random.default_rng(SEED), np.ogrid[: shape[0], : shape[1], : shape[2]]
    light = np.zeros(shape)
    for centre, radius, value in ((draws.uniform(0, shape), draws.uniform((6, 10, 10), (12, 20, 20)),
                                   draws.uniform(80, 200)) for _ in range(max(round(density * light.size), 1))):
        inside = sum(((at - c) / r) ** 2 for at, c, r in zip((z, y, x), centre, radius, strict=True)) < 1
        light = np.maximum(light, value * inside)
    light *= 1 + 3 * gaussian(draws.normal(size=shape), (1.5, 3, 3))
    return draws.poisson(gaussian(light, 1.2).clip(0) + 6).clip(0, 255).astype(np.uint8)


def compare(volume: Array, counts: list[int], runs: int) -> list[tuple[str, bool, str]]:
    """Print a row for each method and count; claims, whether they hold, and what was measured."""
    smooth = gaussian(volume, 1)
    mask = smooth > threshold_otsu(smooth)
    claims = []
    print(f"{'':16s}{'n':>6s}{'labels':>8s}{'regions':>8s}{'seconds':>9s}{'recall':>8s}{'boundary':>9s}{'ASA':>8s}")
    spit.superpixels(volume[:8, :8, :8], 4, channel_axis=None)  # compiled before the clock starts
    for n in counts:
        for theirs in (10.0, 0.1):
            labels, slow = timed(partial(slic, volume, n, theirs, channel_axis=None, start_label=1), runs)
            count, (recall, asa) = pieces(labels), _row(f"slic({theirs:g})", n, labels, slow, mask)
            for own in EVEN:
                labels, fast = timed(partial(spit.superpixels, volume, count, compactness=own, channel_axis=None), runs)
                found, right = _row(f"spit({own:g})", count, labels, fast, mask)
                exact = int(labels.max()) == len(np.unique(labels)) == pieces(labels) == count
                claims += [("exactly n, connected", exact, f"{pieces(labels)} of {count}"),
                           ("faster than slic", fast < slow, f"{fast / slow:.2f} of its time"),
                           ("better recall than slic", found > recall, f"{found - recall:+.3f}"),
                           ("better ASA than slic", right > asa, f"{right - asa:+.4f}")]
    return claims


def _row(name: str, n: int, labels: Array, seconds: float, mask: Array) -> tuple[float, float]:
    """Print one method's row; its recall and ASA."""
    edges, wanted = (find_boundaries(given, connectivity=1, mode="thick") for given in (labels, mask))
    inside, sizes = np.bincount(labels.ravel(), mask.ravel()), np.bincount(labels.ravel())
    recall, asa = float(edges[wanted].mean()), float(np.maximum(inside, sizes - inside).sum() / mask.size)
    print(f"{name:16s}{n:6d}{len(np.unique(labels)):8d}{pieces(labels):8d}{seconds:9.2f}{recall:8.3f}"
          f"{edges.mean():9.3f}{asa:8.4f}", flush=True)
    return recall, asa


def time_bands(side: int, runs: int) -> list[tuple[str, bool, str]]:
    """Print the time by number of bands; claims as of :func:`compare`."""
    n, claims, times = 300, [], {}
    print(f"\n{'bands':>6s}{'labels':>8s}{'regions':>8s}{'seconds':>9s}{'a band':>9s}{'slic':>9s}")
    for count in BANDS:
        cube = field_bands(side, side, count)
        spit.superpixels(cube[:8, :8], 4, channel_axis=-1)
        labels, times[count] = timed(partial(spit.superpixels, cube, n, channel_axis=-1), runs)
        slow = timed(partial(slic, cube, n, channel_axis=-1), 1)[1]
        print(f"{count:6d}{int(labels.max()):8d}{pieces(labels):8d}{times[count]:9.3f}{times[count] / count:9.4f}"
              f"{slow:9.3f}", flush=True)
        claims.append(("exactly n, connected", int(labels.max()) == pieces(labels) == n, f"{pieces(labels)} of {n}"))
    ratio = times[BANDS[-1]] / times[12] / (BANDS[-1] / 12)
    claims.append(("time linear in bands", ratio <= LINEAR, f"{BANDS[-1]} bands take {ratio:.2f} times as long a band "
                                                            "as 12"))
    return claims


def timed(work: Callable[[], Array], runs: int) -> tuple[Array, float]:
    """The answer and the least processor time."""
    least = np.inf
    for _ in range(runs):
        start = time.process_time()
        answer = work()
        least = min(least, time.process_time() - start)
    return answer, least


def pieces(labels: Array) -> int:
    """How many connected pieces of one label there are, by scikit-image."""
    return int(label(labels, background=-1, connectivity=1).max())


def _print_bars(claims: list[tuple[str, bool, str]]) -> None:
    print()
    for bar in dict.fromkeys(claim for claim, _, _ in claims):
        rows = [(held, measured) for claim, held, measured in claims if claim == bar]
        print(f"{'held    ' if all(held for held, _ in rows) else 'NOT held'}  {bar}: "
              f"{', '.join(measured for _, measured in rows)}")


if __name__ == "__main__":
    launch(main)
