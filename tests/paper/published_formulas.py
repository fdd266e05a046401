"""docs/published.md in plain Python and numpy, as far from the library's code as possible: τ's contraction and φ."""

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
ONE = 2**24


def neighbours(labels: Labels) -> set[tuple[int, int]]:
    pairs = itertools.chain(zip(labels[1:].flat, labels[:-1].flat, strict=True),
                            zip(labels[:, 1:].flat, labels[:, :-1].flat, strict=True))
    return {(int(min(a, b)), int(max(a, b))) for a, b in pairs if a != b}


def joined(count: int, pairs: Iterator[tuple[int, int]]) -> list[set[int]]:
    """Connected components, by merging sets."""
    groups = {one: {one} for one in range(count)}
    for a, b in pairs:
        if groups[a] is not groups[b]:
            groups[a] |= groups[b]
            for member in groups[b]:
                groups[member] = groups[a]
    return list({id(group): group for group in groups.values()}.values())


def regions(features: NDArray[np.int64], levels: int, mix: float, threshold: float = 0.0) -> Iterator[Labels]:
    """The labels of every level of an image of ``(4, H, W)`` integer features, ±2²⁴ for ±1."""
    _, height, width = features.shape
    labels = np.arange(height * width).reshape(height, width)
    means = [[int(value) for value in row] for row in features.reshape(4, -1).T]
    for level in range(levels):
        count = len(means)
        places = [np.nonzero(labels == region) for region in range(count)]
        sizes = [len(place[0]) for place in places]

        def weigh(w: float, *members: int, places=places) -> int:  # type: ignore[no-untyped-def]
            y, x = (np.concatenate([places[one][axis] for one in members]) for axis in (0, 1))
            if mix > 0:
                half = np.ptp(y) + 1 + np.ptp(x) + 1
                w = (1 - mix) * w + mix * (2 * (4 * len(y) / (half * half)) - 1)
            return int(np.round((w + 1) / 2 * 65535))

        offers: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for a, b in neighbours(labels):
            dot, aa, bb = (sum(p * q for p, q in zip(means[i], means[j], strict=True))
                           for i, j in ((a, b), (a, a), (b, b)))
            step = weigh(dot / max(np.sqrt(float(aa) * float(bb)), 1.0), a, b)
            offers[a].append((step, b))
            offers[b].append((step, a))
        if level > 0:
            mean = height * width / count
            std = np.sqrt(max(sum(size * size for size in sizes) / count - mean * mean, 0.0))
            for one, size in enumerate(sizes):
                loop = -0.75 if std == 0 else min(max((size - 2 * mean) / std, -0.75), 0.75)
                offers[one].append((weigh(loop, one), one))
        chosen = [max(own)[1] if own else one for one, own in enumerate(offers)]  # of equal steps the highest number
        groups = joined(count, iter(enumerate(chosen)))
        groups.sort(key=lambda group: max(one for one in group if chosen[chosen[one]] == one))
        means = [[round(sum(means[one][c] for one in group) / len(group)) for c in range(4)] for group in groups]
        labels = relabel(labels, groups)
        yield labels
    if threshold > 0:
        gaps = {(a, b): [p - q for p, q in zip(means[a], means[b], strict=True)] for a, b in neighbours(labels)}
        close = (pair for pair, gap in gaps.items() if max(gap) - min(gap) < threshold * ONE)
        yield relabel(labels, sorted(joined(len(means), close), key=min))


def relabel(labels: Labels, groups: list[set[int]]) -> Labels:
    number = np.empty(sum(map(len, groups)), np.int64)
    for index, group in enumerate(groups):
        number[list(group)] = index
    return number[labels]


def tokens(image: Array, labels: Labels, bins: int, sigma: float, gradients: bool) -> Array:
    """φ of an image ``(3, H, W)`` in [0, 1]: ``(N, K² · channels)``, the channels of a bin side by side."""
    _, height, width = image.shape
    shape, mean = np.array([0.539, 0.507, 0.404]), np.array([0.485, 0.456, 0.406])
    power = -np.log(2) / np.log(1 - mean**shape)
    colors = 2 * (1 - (1 - image ** shape[:, None, None]) ** power[:, None, None]) - 1
    grey = np.pad(image.mean(0), 1, mode="edge")
    kernel = np.outer([3, 10, 3], [-1, 0, 1]) / 16
    windows = np.lib.stride_tricks.sliding_window_view(grey, (3, 3))
    slopes = [np.arcsinh(27.8 * (windows * one).sum((2, 3))) / np.arcsinh(27.8) for one in (kernel.T, kernel)]
    y, x = np.mgrid[:height, :width]
    places = [2 * one / max(height, width) - 1 for one in (y, x)]
    numbers = np.stack([*colors, *places, *slopes], -1)  # (H, W, 7)
    wrong_rows = numbers.ravel()[: 5 * height * width].reshape(height, width, 5)
    fields = [numbers[..., 3:5], numbers[..., 5:]] if gradients else [wrong_rows[..., 3:]]
    centres = -1 + (np.arange(bins) + 0.5) * 2 / bins
    rows = []
    for region in range(labels.max() + 1):
        own = labels == region
        rows_of, columns_of = np.nonzero(own)
        channels = [patch(plane, own, rows_of, columns_of, bins) for plane in colors]
        for field in fields:
            bells = np.exp(-((field[own][:, None] - centres[:, None]) ** 2) / (2 * sigma**2))  # (pixels, K, 2)
            channels.append(4 * np.einsum("pi,pj->ij", bells[..., 0], bells[..., 1]) / own.sum())
        rows.append(np.stack(channels, -1).ravel())
    return np.stack(rows)


def patch(plane: Array, own: NDArray[np.bool_], rows: Labels, columns: Labels, bins: int) -> Array:
    """Samples from the first to the last row and column: interpolated colour times interpolated mask."""
    ys, xs = (np.linspace(ends.min(), ends.max(), bins) for ends in (rows, columns))
    return sample(plane, ys, xs) * sample(own.astype(float), ys, xs)


def sample(plane: Array, ys: Array, xs: Array) -> Array:
    along = np.stack([np.interp(xs, np.arange(plane.shape[1]), row) for row in plane])
    return np.stack([np.interp(ys, np.arange(plane.shape[0]), column) for column in along.T], 1)
