"""Contract 8: what a compiled kernel would read or write outside its memory is refused first."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spit import Hierarchy, Partition, PatchTokenizer, SuperpixelTokenizer, VoronoiTokenizer

LABELS = torch.tensor([[[0, 0, 1], [0, 2, 1]], [[0, 0, 0], [1, 1, 1]]])  # three regions, and two
FRAMES = torch.tensor([[0, 0, 2, 2], [0, 2, 2, 3], [1, 1, 2, 2], [-1, 0, 1, 3], [1, 0, 2, 4]])


@pytest.mark.parametrize(("labels", "counts", "message"), [
    (LABELS + 1, [3, 2], "labels 0 to 2 in image 0, which has 3 regions, got 1 to 3; labels start at 1: subtract 1, "
                         "or use Partition.from_labels"),
    (LABELS, [3, 1], "labels 0 to 0 in image 1, which has 1 region, got 0 to 1; use Partition.from_labels"),
    (LABELS - 1, [3, 2], "in image 0, which has 3 regions, got -1 to 1"),
    (LABELS, [3, 3], "a pixel in every region, got none in region 2 of image 1; use Partition.from_labels"),
    (LABELS * 2, [5, 3], "got none in region 1 of image 0"),
    (LABELS, [3, 10**12], "got none in region 2 of image 1"),
    (LABELS * 2**40, [3, 2], "got 0 to 2199023255552"),
    (LABELS, [3, 0], "labels 0 to -1 in image 1, which has 0 regions"),
    (LABELS, [5, -2], r"from 0 and never decreasing, got \[0, 5, 3\]"),
    (LABELS, [3], r"3 offsets for 2 images, from 0 and never decreasing, got \[0, 3\]"),
    (LABELS, [[3, 2]], r"counts with 1 dimensions, got shape \(1, 2\)"),
    (LABELS[0], [3], r"labels with 3 dimensions, got shape \(2, 3\)"),
    (LABELS[:, :0], [3, 2], r"label maps with pixels, all on one device, got \(0, 3\)"),
])
def test_labels_that_are_no_partition_are_refused(labels: torch.Tensor, counts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Partition.of(labels, torch.tensor(counts))


@pytest.mark.parametrize(("arguments", "message"), [
    ((LABELS.float(), [3, 2]), "labels as a tensor of integers, got Tensor of torch.float32"),
    ((LABELS > 0, [2, 2]), "labels as a tensor of integers, got Tensor of torch.bool"),
    ((LABELS, torch.tensor([3.0, 2.0])), "counts as a tensor of integers, got Tensor of torch.float32"),
    (("labels", [3, 2]), "labels as a tensor of integers, got str"),
    ((LABELS, [3, 2], FRAMES.float()), "frames as a tensor of integers"),
])
def test_other_types_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Partition.of(*arguments)


@pytest.mark.parametrize(("blocks", "offsets", "error", "message"), [
    (LABELS, [0, 3, 5], TypeError, "a tuple of .* label maps, got Tensor of torch.int64; use Partition.of"),
    ((), [0], TypeError, "a tuple of .* label maps, got tuple"),
    ((LABELS,), [1, 3, 5], ValueError, r"from 0 and never decreasing, got \[1, 3, 5\]"),
    ((LABELS,), [0, 3, 2], ValueError, r"never decreasing, got \[0, 3, 2\]"),
    ((LABELS, LABELS), [0, 3, 5], ValueError, "5 offsets for 4 images"),
    ((LABELS,), [[0, 3, 5]], ValueError, "offsets with 1 dimensions"),
])
def test_the_constructor_checks_offsets(blocks: Any, offsets: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Partition(blocks, torch.tensor(offsets))


def test_another_device_is_refused() -> None:
    with pytest.raises(ValueError, match="labels and offsets on one device, got cpu and meta"):
        Partition((LABELS,), torch.tensor([0, 3, 5], device="meta"))


@pytest.mark.parametrize(("row", "frame"), [
    (0, [0, 0, 2, 1]), (1, [0, 3, 2, 2]), (2, [0, 0, 0, 0]), (3, [0, 0, 2**40, 2**40]), (4, [2, 0, 1, 3]),
])
def test_frames_contain_their_regions(row: int, frame: list[int]) -> None:
    frames = FRAMES.clone()
    frames[row] = torch.tensor(frame)
    with pytest.raises(ValueError, match=rf"contain the boxes of their regions, got \[{frame[0]}, .* row {row}$"):
        Partition.of(LABELS, [3, 2], frames)


@pytest.mark.parametrize("frames", [FRAMES[:4], FRAMES[:, :3], FRAMES.to("meta")])
def test_frames_are_one_box_per_region(frames: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"frames \(y0, x0, y1, x1\) of shape \(5, 4\) on cpu, got"):
        Partition.of(LABELS, [3, 2], frames)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16])
def test_integers_of_any_width_are_converted(dtype: torch.dtype) -> None:
    part = Partition.of(LABELS.to(dtype), torch.tensor([3, 2], dtype=torch.int32), FRAMES)
    assert (part.blocks[0].dtype, part.offsets.dtype, part.frames.dtype) == (torch.int32, torch.int64, torch.int32)
    assert torch.equal(part.labels, LABELS.int())
    assert part.boxes().tolist() == [[0, 0, 2, 2], [0, 2, 2, 3], [1, 1, 2, 2], [0, 0, 1, 3], [1, 0, 2, 3]]


def test_arrays_are_converted() -> None:
    part = Partition.of(LABELS.numpy(), np.array([3, 2]))
    assert torch.equal(part.labels, LABELS.int())


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), height=st.integers(1, 6), width=st.integers(1, 6), most=st.integers(1, 5),
       shift=st.integers(-1, 1), count=st.integers(0, 6))
def test_only_partitions_pass(seed: int, height: int, width: int, most: int, shift: int, count: int) -> None:
    labels = torch.from_numpy(np.random.default_rng(seed).integers(0, most, (1, height, width))) + shift
    if labels.unique().tolist() == list(range(count)):
        assert Partition.of(labels, [count]).sizes().tolist() == labels.flatten().bincount().tolist()
    else:
        with pytest.raises(ValueError, match="expected"):
            Partition.of(labels, [count])


@pytest.mark.parametrize("tokenizer", [SuperpixelTokenizer(levels=2), VoronoiTokenizer(9), PatchTokenizer(5)], ids=str)
def test_every_tokenizer_makes_a_partition(tokenizer: Any) -> None:
    """Which its trusted constructor does not check."""
    images = torch.randint(0, 256, (2, 3, 17, 24), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    part = tokenizer(images)
    again = dataclasses.replace(part)
    assert torch.equal(again.labels, part.labels)


def test_a_hierarchy_is_made_by_tokenizers_alone() -> None:
    with pytest.raises(TypeError, match="cannot be made by hand"):
        Hierarchy()
