"""spit.superpixels_video: labels stay where nothing moves, and stability is not bought with bad regions."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from skimage import color, data, img_as_float, measure

import spit
from spit.evaluation.superpixels import explained_variation
from spit.kernels.numba.contraction import sum_pixels

Image = NDArray[np.uint8]
Labels = NDArray[np.int32]
PHOTO, OTHER = data.coffee()[:240, :320], data.astronaut()[:240, :320]


def noisy(image: Image, seed: int, most: int = 3) -> Image:
    noise = np.random.default_rng(seed).integers(-most, most + 1, image.shape)
    return (image + noise).clip(0, 255).astype(np.uint8)


def panned(rows: int, columns: int, count: int) -> list[Image]:
    """A camera that moves by so many rows and columns a frame over the photo."""
    whole = data.coffee()
    return [noisy(whole[rows * t : rows * t + 240, columns * t : columns * t + 320], t) for t in range(count)]


def disk(left: int) -> NDArray[np.bool_]:
    y, x = np.ogrid[:240, :320]
    return (y - 120) ** 2 + (x - left) ** 2 < 50**2


def label(frames: Sequence[Image], n: int = 300) -> list[Labels]:
    return list(spit.superpixels_video(frames, n))


def renumbered(first: Labels, second: Labels) -> float:
    """The share of pixels with the same label after the best renumbering of the second."""
    table = np.zeros((first.max() + 1, second.max() + 1), int)
    np.add.at(table, (first, second), 1)
    return float(table[linear_sum_assignment(-table)].sum() / first.size)


def worse_than_alone(frames: Sequence[Image], labels: Sequence[Labels]) -> list[float]:
    """By how much less each frame is explained than by its own superpixels."""
    return [explained_variation(frame, spit.superpixels(frame, len(np.unique(ours)))) - explained_variation(frame, ours)
            for frame, ours in zip(frames, labels, strict=True)]


@pytest.mark.parametrize("most", [0, 1, 3, 10])
def test_noise_moves_no_border(most: int) -> None:
    frames = [noisy(PHOTO, t, most) for t in range(4)]
    labels = label(frames)
    assert np.array_equal(labels[0], spit.superpixels(frames[0], 300))
    for later in labels[1:]:
        assert np.array_equal(later, labels[0])
    if most == 3:
        alone = [spit.superpixels(frame, 300) for frame in frames[:2]]
        assert renumbered(*alone) < 0.8, "what independent frames keep"
    assert max(worse_than_alone(frames, labels)) < 0.01


@pytest.mark.parametrize(("rows", "columns"), [(0, 2), (1, 1), (3, -5)])
def test_labels_follow_the_camera(rows: int, columns: int) -> None:
    frames = panned(rows, abs(columns), 6)
    frames = frames if columns >= 0 else [frame[:, ::-1] for frame in frames]
    labels = label(frames)
    for before, after in pairwise(labels):
        before, after = (before, after) if columns >= 0 else (before[:, ::-1], after[:, ::-1])
        assert np.mean(before[rows:, abs(columns) :] == after[: 240 - rows, : 320 - abs(columns)]) > 0.95
    assert max(worse_than_alone(frames, labels)) < 0.01
    assert explained_variation(frames[-1], labels[-1]) > explained_variation(frames[-1], labels[0]) + 0.05


def test_the_background_of_a_moving_object_keeps_its_labels() -> None:
    frames, places = [], [disk(60 + 4 * t) for t in range(10)]
    for t, inside in enumerate(places):
        frames.append(noisy(np.where(inside[..., None], OTHER, PHOTO), t))
    labels = label(frames)
    for t in range(1, 10):
        still = ~places[t - 1] & ~places[t]
        assert np.mean(labels[t - 1][still] == labels[t][still]) > 0.95
    assert max(worse_than_alone(frames, labels)) < 0.01
    assert explained_variation(frames[-1], labels[-1]) > explained_variation(frames[-1], labels[0]) + 0.01


def test_a_new_object_has_its_own_regions() -> None:
    frames = [noisy(PHOTO, 0), noisy(np.where(disk(160)[..., None], np.uint8(0), PHOTO), 1)]
    before, after = label(frames)
    inside = after[disk(160)]
    assert np.mean(inside > before.max()) > 0.9, "new content has new numbers"
    assert np.isin(np.unique(after[~disk(162)]), inside, invert=True).mean() > 0.9


def test_a_cut_starts_anew() -> None:
    frames = [noisy(image, t) for t, image in enumerate([PHOTO, PHOTO, OTHER, OTHER])]
    labels = label(frames)
    assert np.array_equal(labels[2], labels[0].max() + spit.superpixels(frames[2], 300))
    assert np.array_equal(labels[3], labels[2])


def test_a_number_that_is_gone_does_not_come_back() -> None:
    frames = [noisy(np.where(disk(60 + 10 * t)[..., None], OTHER, PHOTO), t) for t in range(12)]
    seen, gone = set(), set()
    for labels in label(frames):
        present = set(np.unique(labels).tolist())
        assert not present & gone
        gone |= seen - present
        seen |= present
    assert gone


@pytest.mark.parametrize("step", [0.25, 1])
def test_small_changes_add_up(step: float) -> None:
    """A curtain of which no region sees more than a column a frame."""
    frames = []
    for t in range(40):
        frame, end = PHOTO.copy(), int(step * t)
        frame[:, :end] = OTHER[:, :end]
        frames.append(frame)
    labels = label(frames)
    assert max(worse_than_alone(frames[::13], labels[::13])) < 0.01


def test_a_fade_is_followed() -> None:
    frames = [noisy((PHOTO * (1 - t / 50)).astype(np.uint8), t) for t in range(10)]
    labels = label(frames)
    assert max(worse_than_alone(frames, labels)) < 0.01
    assert np.mean([np.mean(one == two) for one, two in pairwise(labels)]) > 0.9


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10_000), height=st.integers(1, 14), width=st.integers(1, 14), n=st.integers(1, 60),
       colors=st.sampled_from([None, 1, 3, 4]), compactness=st.sampled_from([0, 0.3, 5.0]), depth=st.integers(1, 8))
def test_counts_and_connection(seed: int, height: int, width: int, n: int, colors: int | None, compactness: float,
                               depth: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (height, width) if colors is None else (height, width, colors)
    frames = [rng.integers(0, 2**depth, shape, np.uint8)]
    for change in rng.random(5) ** 3:  # from hardly any to all pixels, moved by some
        moved = np.roll(frames[-1], rng.integers(-2, 3, 2), (0, 1))
        new = rng.integers(0, 2**depth, shape, np.uint8)
        frames.append(np.where(rng.random(shape) < change, new, moved))
    copies = [frame.copy() for frame in frames]
    options = {"n": n, "compactness": compactness, "channel_axis": None if colors is None else -1}
    labels = list(spit.superpixels_video(frames, **options))
    for frame, copy, ours in zip(frames, copies, labels, strict=True):
        assert np.array_equal(frame, copy)
        assert (ours.shape, ours.dtype) == ((height, width), np.int32)
        assert ours.min() >= 1
        assert len(np.unique(ours)) == min(n, height * width) == measure.label(ours, connectivity=1).max()
    for one, two in zip(labels, spit.superpixels_video(iter(frames), **options), strict=True):
        assert np.array_equal(one, two)


def test_frames_are_read_one_by_one_into_any_memory() -> None:
    buffer, read = np.empty_like(PHOTO), []

    def camera() -> Iterator[Image]:
        for t in range(3):
            buffer[:] = noisy(np.roll(PHOTO, 2 * t, 1), t)
            read.append(t)
            yield buffer

    labels = []
    for count, ours in enumerate(spit.superpixels_video(camera(), 300), 1):
        assert len(read) == count
        labels.append(ours.copy())
        ours[:] = 0
    frames = [noisy(np.roll(PHOTO, 2 * t, 1), t) for t in range(3)]
    for ours, theirs in zip(labels, label(frames), strict=True):
        assert np.array_equal(ours, theirs)


def test_grey_and_floats_and_one_array_of_all_frames() -> None:
    frames = np.stack([noisy(np.where(disk(60 + 9 * t)[..., None], OTHER, PHOTO), t) for t in range(3)])
    labels = label(list(frames))
    for ours, theirs in zip(labels, spit.superpixels_video(img_as_float(frames), 300), strict=True):
        assert np.array_equal(ours, theirs)
    grey = (color.rgb2gray(frames) * 255).astype(np.uint8)
    ours = list(spit.superpixels_video(grey, 50, channel_axis=None))
    assert np.array_equal(ours[0], spit.superpixels(grey[0], 50))
    assert [len(np.unique(one)) for one in ours] == [50] * 3
    moved = np.moveaxis(frames, -1, 1)
    for one, two in zip(labels, spit.superpixels_video(moved, 300, channel_axis=0), strict=True):
        assert np.array_equal(one, two)


def test_frames_so_long_that_sums_of_columns_need_64_bits() -> None:
    columns = np.indices((12, 24_000), np.int16)
    sums, _ = sum_pixels(columns, np.zeros((12, 24_000), np.int32), 1, False)
    assert sums[0, 1] == 12 * 24_000 * 23_999 // 2 > 2**31


def test_errors() -> None:
    with pytest.raises(TypeError, match=r"expected frames, got the path 'a\.mp4'; read it with imageio\.v3\.imiter"):
        spit.superpixels_video("a.mp4")
    with pytest.raises(ValueError, match=r"expected frames, got an image of shape \(240, 320, 3\); give \[image\]"):
        spit.superpixels_video(PHOTO)
    with pytest.raises(ValueError, match=r"frames of 240×320 with 3 channels like the first, got 100×320 with 3 at "
                                         r"place 1$"):
        list(spit.superpixels_video([PHOTO, PHOTO[:100]]))
    with pytest.raises(ValueError, match="1 or more, got 0"):
        next(spit.superpixels_video([PHOTO], 0))
    assert list(spit.superpixels_video([])) == []
