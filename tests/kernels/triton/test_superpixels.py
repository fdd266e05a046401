"""Superpixels in Triton: packed sums, many blocks, and no waiting for the device between levels."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from kernels.parity import assert_same
from spit.kernels import SCALE, Rules, reference

Draw = Callable[..., Tensor]
pytestmark = pytest.mark.usefixtures("few_programs")

ALL = Rules(levels=3, compactness=0.3, merge_threshold=0.3, max_tokens=3)


@pytest.mark.parametrize(("channels", "packed"), [(1, True), (2, True), (4, True), (1, False), (3, False), (4, False)])
def test_sums_packed_in_pairs_or_not(
    gpu: Any, mixed: Draw, monkeypatch: pytest.MonkeyPatch, channels: int, packed: bool
) -> None:
    if not packed:
        monkeypatch.setattr(import_module("spit.kernels.triton.superpixels"), "PACKABLE", 1)
    features = mixed((2, channels, 7, 6), -SCALE, SCALE).to(torch.int16)
    rules = Rules(levels=2, merge_threshold=0.2, max_tokens=3)
    assert_same(gpu.superpixels(features, rules), reference.superpixels(features, rules))


def test_extreme_sums_do_not_spill_from_one_half_of_a_word_into_the_other(gpu: Any) -> None:
    features = torch.empty(2, 3, 12, 12, dtype=torch.int16)
    features[0], features[1] = -SCALE, SCALE
    features[:, :, :, 6:] = torch.tensor([SCALE, -SCALE, SCALE])[:, None, None]
    rules = Rules(levels=6, max_tokens=1)
    assert_same(gpu.superpixels(features, rules), reference.superpixels(features, rules))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("rules", [Rules(levels=3), ALL], ids=["plain", "all"])
def test_many_blocks(gpu: Any, mixed: Draw, rules: Rules) -> None:
    """Components, numbers and sums that go over the edges of blocks; edge lists longer than their programs."""
    features = mixed((2, 3, 9, 11), -SCALE, SCALE, first=9).to(torch.int16)
    assert_same(gpu.superpixels(features, rules), reference.superpixels(features, rules))


@pytest.mark.parametrize("width", [1, 24])
def test_boxes_of_all_levels(gpu: Any, photo: Callable[[str, int], Tensor], width: int) -> None:
    """With compactness alone, the choices of each level are those of its boxes and sizes."""
    image = photo("coffee", 24)[None, :, :18, :width]
    rules = Rules(levels=4, compactness=1.0, loop_clip=None)
    features = (image.int() * 16 - SCALE).to(torch.int16)
    assert_same(gpu.superpixels(features, rules), reference.superpixels(features, rules))


@pytest.mark.usefixtures("small_blocks")
def test_more_chunks_than_a_program_adds_up_at_once(gpu: Any, mixed: Draw) -> None:
    """1,240 pixels in 39 chunks of 32, whose counts are added 32 at a time."""
    features = mixed((1, 1, 31, 40), -SCALE, SCALE).to(torch.int16)
    assert_same(gpu.superpixels(features, Rules(levels=1)), reference.superpixels(features, Rules(levels=1)))


@pytest.mark.parametrize("similarity", ["cosine", "euclidean", "variance"])
def test_wide_strips_at_level_0(gpu: Any, mixed: Draw, monkeypatch: pytest.MonkeyPatch, similarity: Any) -> None:
    """As in large batches: eight, four or two pixels to a lane, and a second strip with a halo."""
    monkeypatch.setattr(import_module("spit.kernels.triton.tiles"), "LARGE", 0)
    rules = Rules(levels=1, similarity=similarity)
    for width in (60, 100, 130, 300):
        features = mixed((1, 2, 3, width), -SCALE, SCALE).to(torch.int16)
        assert_same(gpu.superpixels(features, rules), reference.superpixels(features, rules))


@pytest.mark.parametrize("threshold", [0.02, 0.3, 5.0])
def test_final_merge(gpu: Any, mixed: Draw, threshold: float) -> None:
    """Chains of joined regions, up to a whole image."""
    features = mixed((2, 3, 9, 40), -SCALE, SCALE).to(torch.int16)
    rules = Rules(levels=1, merge_threshold=threshold)
    got, expected = gpu.superpixel_labels(features, rules), reference.superpixel_labels(features, rules)
    assert torch.equal(got[0], expected[0])
    assert torch.equal(got[1], expected[1])


def test_final_merge_of_a_long_chain(gpu: Any) -> None:
    """Pairs of pixels that grow brighter from left to right: each is close to the next one alone."""
    row = torch.arange(60).repeat_interleave(2) * 60 - SCALE + 100
    features = row.expand(1, 1, 1, -1).to(torch.int16).contiguous()
    rules = Rules(levels=1, similarity="euclidean", merge_threshold=0.05)
    assert reference.superpixels(features, rules)[0][1].item() == 60
    assert_same(gpu.superpixels(features, rules), reference.superpixels(features, rules))
    assert gpu.superpixel_labels(features, rules)[1].item() == 1


def test_more_than_one_block_of_the_true_size(gpu: Any, photo: Callable[[str, int], Tensor]) -> None:
    """96 × 64: 12 blocks of pixels, and at level 1 more regions than a block has."""
    image = photo("astronaut", 96)[None, :, :, :64]
    features = (image.int() * 16 - SCALE).to(torch.int16)
    levels = gpu.superpixels(features, Rules())
    assert levels[0][1].item() > 1024
    assert_same(levels, reference.superpixels(features, Rules()))


class Unwaiting(TorchDispatchMode):
    """Raises where an operation's answer decides a shape or a branch on the host: there a GPU would be waited for."""

    WAITS = ("_local_scalar_dense", "item", "nonzero", "masked_select", "equal", "is_nonzero", "unique", "bincount",
             "repeat_interleave.Tensor", "index.Tensor")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::")
        waits = name.startswith(self.WAITS)
        if name.startswith("index.Tensor"):  # only a mask as index has as many answers as it has Trues
            waits = any(index is not None and index.dtype == torch.bool for index in args[1])
        if waits and not interpreting():
            raise AssertionError(f"{name} waits for the device")
        return func(*args, **(kwargs or {}))


def interpreting() -> bool:
    """Whether Triton's interpreter is at work; it is on the host in any case."""
    frame = sys._getframe(1)
    while frame is not None:
        if "/triton/runtime/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


@pytest.fixture
def unwaiting(monkeypatch: pytest.MonkeyPatch) -> Unwaiting:
    tolist = Tensor.tolist

    def checked(self: Tensor) -> Any:  # on the CPU it passes by the dispatcher
        if not interpreting():
            raise AssertionError("tolist waits for the device")
        return tolist(self)

    monkeypatch.setattr(Tensor, "tolist", checked)
    return Unwaiting()


def test_no_level_waits_for_the_device(gpu: Any, mixed: Draw, unwaiting: Unwaiting) -> None:
    """Contract 5. tests/kernels/triton/test_cuda.py asks CUDA itself."""
    features = mixed((2, 3, 6, 7), -SCALE, SCALE).to(torch.int16)
    with unwaiting:
        for rules in (Rules(), Rules(levels=2, compactness=0.2, loop_clip=None, merge_threshold=0.1)):
            gpu.superpixel_labels(features, rules)


@pytest.mark.parametrize("wait", [
    lambda x: x.item(), lambda x: int(x), lambda x: x.tolist(), lambda x: bool(x), lambda x: float(x),
    lambda x: x[None][x[None] > 0], lambda x: x.nonzero(), lambda x: torch.equal(x, x + 1), lambda x: range(x),
    lambda x: torch.ones(1).repeat_interleave(x[None]),
])
def test_the_test_above_can_see_a_wait(unwaiting: Unwaiting, wait: Callable[[Tensor], object]) -> None:
    x = torch.tensor(3)
    with unwaiting, pytest.raises(AssertionError, match="waits for the device"):
        wait(x)
