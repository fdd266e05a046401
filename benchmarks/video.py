"""Do labels stay where nothing moves? ``spit.superpixels_video`` beside independent superpixels of each frame.

    python benchmarks/video.py [--frames 10]

Videos are made of scikit-image's photos, 320×480, with noise of ±3 in each frame unless the name says none. "kept" is
the mean share of pixels that keep their label from one frame to the next, of those that both frames show and that are
at rest: the background of a moving object, what the camera sees twice, and all but the first frame after a cut.
Independent frames ("alone") are first given the best renumbering, the assignment of labels with the largest overlap.
R² is the explained variation, a mean over the frames; "first" is that of the first frame's labels. Time is that of a
frame after the first, in times of ``spit.superpixels``, the least of several runs in turn.

Bars: kept ≥ .95 but for the zoom, and R² within .01 of independent frames and at least that of the first one's labels.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from provenance import arguments, launch, print_provenance
from scipy.optimize import linear_sum_assignment
from skimage import data
from skimage.transform import resize

import spit
from spit.evaluation.superpixels import explained_variation

SEED = 0
REGIONS = 600
RUNS = 5
HEIGHT, WIDTH = 320, 480
Image = NDArray[np.uint8]
Labels = NDArray[np.int32]
Mask = NDArray[np.bool_]
Places = tuple[NDArray[np.int64], NDArray[np.int64]]
Shot = tuple[Image, tuple[int, int], Mask]  # a frame, the camera's move in rows and columns, and what is at rest
Video = list[Shot]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--frames", type=int, default=10, help="frames in a video, at least 3")
    args = parser.parse_args()
    if args.frames < 3:
        parser.error(f"argument --frames: expected at least 3, got {args.frames}")
    print_provenance(f"made by this script from scikit-image's photos; {args.frames} frames of {HEIGHT}×{WIDTH}, "
                     f"{REGIONS} regions", SEED)
    print(f"{'':16s}{'kept':>7s}{'alone':>7s}{'R²':>9s}{'alone':>8s}{'first':>8s}{'time':>7s}")
    for name, make in VIDEOS.items():
        print(f"{name:16s}{row(list(make(args.frames)))}", flush=True)


def row(video: Video) -> str:
    """The figures of one video."""
    frames = [frame for frame, _, _ in video]
    alone, ours, ratio = run(frames)
    kept, matched = [], []
    for place in range(1, len(video)):
        before, after = shared(*video[place - 1 : place + 1])
        if len(before[0]) > 0:
            kept.append(np.mean(ours[place - 1][before] == ours[place][after]))
            matched.append(renumbered(alone[place - 1][before], alone[place][after]))
    explained = [np.mean([explained_variation(*pair) for pair in zip(frames, labels, strict=True)])
                 for labels in (ours, alone, [alone[0]] * len(frames))]
    return (f"{np.mean(kept):7.3f}{np.mean(matched):7.3f}{explained[0]:9.4f}{explained[1]:8.4f}{explained[2]:8.4f}"
            f"{ratio:7.2f}")


def run(frames: list[Image]) -> tuple[list[Labels], list[Labels], float]:
    """Superpixels of each frame alone and of the video, and the ratio of their times."""
    times = np.empty((RUNS, 2, len(frames)))
    for taken in times:
        video, alone, ours = spit.superpixels_video(frames, REGIONS), [], []
        for place, frame in enumerate(frames):
            start = time.perf_counter()
            alone.append(spit.superpixels(frame, REGIONS))
            between = time.perf_counter()
            ours.append(next(video))
            taken[:, place] = between - start, time.perf_counter() - between
    least = times.min(0)[:, 1:].mean(1)
    return alone, ours, float(least[1] / least[0])


def shared(first: Shot, second: Shot) -> tuple[Places, Places]:
    """The pixels at rest that two frames share: their places in the one and in the other."""
    _, (rows, columns), still = second
    y, x = np.nonzero(still[: HEIGHT - rows, : WIDTH - columns] & first[2][rows:, columns:])
    return (y + rows, x + columns), (y, x)


def renumbered(first: Labels, second: Labels) -> float:
    """The share of pixels with the same label after the best renumbering."""
    table = np.zeros((REGIONS + 1, REGIONS + 1), int)
    np.add.at(table, (first, second), 1)
    return float(table[linear_sum_assignment(-table)].sum() / first.size)


def noisy(image: NDArray, place: int, most: int = 3) -> Image:
    """The image with noise of up to so many steps."""
    noise = np.random.default_rng((SEED, place)).integers(-most, most + 1, image.shape)
    return (np.rint(image) + noise).clip(0, 255).astype(np.uint8)


EVERYWHERE = np.ones((HEIGHT, WIDTH), np.bool_)


def still(count: int) -> Iterator[Shot]:
    for t in range(count):
        yield noisy(data.coffee()[:HEIGHT, :WIDTH], t), (0, 0), EVERYWHERE


def pan(rows: int, columns: int, noise: int = 3) -> Callable[[int], Iterator[Shot]]:
    """A camera that moves on by so many rows and columns a frame."""
    def make(count: int) -> Iterator[Shot]:
        photo = np.pad(data.coffee(), ((0, rows * count), (0, columns * count), (0, 0)), "reflect")
        for t in range(count):
            y, x = rows * t, columns * t
            yield noisy(photo[y : y + HEIGHT, x : x + WIDTH], t, noise), (rows, columns), EVERYWHERE
    return make


def moving(count: int) -> Iterator[Shot]:
    """The cat's face, which moves by three columns a frame over a photo."""
    cat, (y, x) = data.chelsea()[60:180, 120:280], np.mgrid[-1:1:120j, -1:1:160j]
    disk = x**2 + y**2 < 1
    for t in range(count):
        frame, around = data.coffee()[:HEIGHT, :WIDTH].copy(), EVERYWHERE.copy()
        place = slice(100, 220), slice((40 + 3 * t) % (WIDTH - 160), (40 + 3 * t) % (WIDTH - 160) + 160)
        frame[place][disk], around[place] = cat[disk], ~disk
        yield noisy(frame, t), (0, 0), around


def fade(count: int) -> Iterator[Shot]:
    for t in range(count):
        yield noisy(data.coffee()[:HEIGHT, :WIDTH] * (1 - 0.02 * t), t), (0, 0), EVERYWHERE


def zoom(count: int) -> Iterator[Shot]:
    """The camera comes nearer by 1.5 % a frame."""
    for t in range(count):
        frame = data.coffee()[3 * t : 400 - 3 * t, 4 * t : 600 - 4 * t]
        yield noisy(resize(frame, (HEIGHT, WIDTH), preserve_range=True), t), (0, 0), EVERYWHERE


def cut(count: int) -> Iterator[Shot]:
    """One photo, then another; nothing is at rest where it begins."""
    for t in range(count):
        photo = data.coffee() if 2 * t < count else data.astronaut()
        yield noisy(photo[:HEIGHT, :WIDTH], t), (0, 0), EVERYWHERE & (t != (count + 1) // 2)


VIDEOS = {"still": still, "pan 0, 2": pan(0, 2), "pan 1, 1": pan(1, 1), "pan, no noise": pan(0, 2, 0),
          "moving object": moving, "fade 2 %": fade, "zoom 1.5 %": zoom, "cut": cut}


if __name__ == "__main__":
    launch(main)
