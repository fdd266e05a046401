"""What only a GPU can show: numba's labels at true sizes, recordings, and that nothing waits."""

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from math import inf
from types import ModuleType

import pytest
import torch
from torch import Tensor

from spit.kernels import SCALE, Rules, recording, tensors
from spit.tokenizers.preprocess import superpixel_features
from spit.tokens import offsets_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")

RULES = [
    Rules(),
    Rules(levels=6, loop_clip=inf, compactness=0.1),
    Rules(loop_clip=None, compactness=0.8),
    Rules(levels=3, similarity="euclidean", loop_clip=None, merge_threshold=0.05, max_tokens=60),
    Rules(levels=3, similarity="variance", loop_clip=None, max_tokens=60),
]


@pytest.fixture
def superpixels() -> Iterator[ModuleType]:
    """The module, with no recordings from before."""
    recording.replay.clear()
    yield import_module("spit.kernels.triton.superpixels")
    recording.replay.clear()


@pytest.fixture(scope="module")
def features(photo: Callable[[str, int], Tensor]) -> Tensor:
    images = [photo(name, 200)[:, :170] for name in ("astronaut", "coffee", "chelsea", "rocket")]
    return superpixel_features(torch.stack(images), "paper")


def assert_same(got: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> None:
    assert torch.equal(got[0].cpu(), expected[0])
    assert torch.equal(got[1].cpu(), expected[1])


@pytest.mark.parametrize("rules", RULES, ids=repr)
@pytest.mark.parametrize("packed", [True, False])
def test_labels_are_those_of_the_cpu(
    superpixels: ModuleType, features: Tensor, rules: Rules, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "room_for", lambda device: 0)  # nothing is recorded
    if not packed:
        monkeypatch.setattr(import_module("spit.kernels.triton.superpixels"), "PACKABLE", 1)
    assert_same(superpixels.superpixel_labels(features.cuda(), rules), tensors.superpixel_labels(features, rules))


@pytest.mark.parametrize("shape", [(1, 3, 1, 1), (2, 1, 1, 30), (2, 5, 30, 1), (1, 2, 2, 2), (3, 4, 16, 16)])
@pytest.mark.parametrize("rules", RULES, ids=repr)
def test_sizes_for_which_triton_compiles_something_of_their_own(
    superpixels: ModuleType, shape: tuple[int, ...], rules: Rules
) -> None:
    """It treats the numbers 1 and multiples of 16 apart, which the interpreter does not."""
    features = torch.randint(-SCALE, SCALE + 1, shape, dtype=torch.int16, generator=torch.Generator().manual_seed(0))
    assert_same(superpixels.superpixel_labels(features.cuda(), rules), tensors.superpixel_labels(features, rules))


@pytest.mark.parametrize("size", [(64, 256), (40, 481), (300, 33)])
def test_large_batches(superpixels: ModuleType, photo: Callable[[str, int], Tensor], size: tuple[int, int]) -> None:
    """Wide and tall strips, from 4 million numbers on."""
    height, width = size
    views = [photo(name, 481)[:, :height, :width] for name in ("astronaut", "coffee", "chelsea")]
    images = torch.stack(views).repeat(-(-(2**22) // (9 * height * width)), 1, 1, 1)
    expected = tensors.superpixel_labels(superpixel_features(images[:3], "paper"), Rules(merge_threshold=0.1))
    features = superpixel_features(images.cuda(), "paper")
    assert features.numel() >= 2**22
    labels, counts = superpixels.superpixel_labels(features, Rules(merge_threshold=0.1))
    assert_same((labels[-3:], counts[-3:]), expected)


def test_a_replay_answers_as_a_plain_run(superpixels: ModuleType, features: Tensor) -> None:
    expected = [tensors.superpixel_labels(image[None], Rules()) for image in features]
    answers = []
    for _ in range(3):
        for image in features:
            answers.append(superpixels.superpixel_labels(image[None].cuda(), Rules()))
    assert len(recording.replay) == 1
    for got, index in zip(answers, [*range(len(features))] * 3, strict=True):  # read last: none was written over
        assert_same(got, expected[index])


def test_a_recording_made_in_inference_mode_serves_outside_it(superpixels: ModuleType, features: Tensor) -> None:
    with torch.inference_mode():
        for _ in range(recording.SEEN_BEFORE + 2):
            superpixels.superpixel_labels(features[:1].cuda(), Rules())
    assert len(recording.replay) == 1
    got = superpixels.superpixel_labels(features[1:2].cuda(), Rules())
    assert not got[0].is_inference()
    assert_same(got, tensors.superpixel_labels(features[1:2], Rules()))


def test_recordings_hold_so_much_and_no_more(
    superpixels: ModuleType, features: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "room_for", lambda device: 4000)
    for width in (20, 21, 22, 23, 24, 20):  # of 960 to 1152 features
        image = features[:1, :, :16, :width].cuda()
        expected = tensors.superpixel_labels(image.cpu(), Rules(levels=2))
        for _ in range(recording.SEEN_BEFORE + 2):
            assert_same(superpixels.superpixel_labels(image, Rules(levels=2)), expected)
    assert [shape[-1] for _, ((shape, _),), *_ in recording.replay._held] == [23, 24, 20]


@pytest.mark.parametrize("rules", [Rules(), Rules(levels=6, compactness=0.2, loop_clip=None),
                                   Rules(levels=3, merge_threshold=0.1)], ids=repr)
def test_no_level_waits_for_the_device(
    superpixels: ModuleType, features: Tensor, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contract 5."""
    monkeypatch.setattr(recording, "room_for", lambda device: 0)
    batch = features.cuda().repeat(16, 1, 1, 1)
    superpixels.superpixel_labels(batch, rules)  # compiles
    torch.cuda.synchronize()
    try:
        with warnings.catch_warnings():  # it says, once, that it is a prototype
            warnings.simplefilter("ignore")
            torch.cuda.set_sync_debug_mode("error")
        labels, _ = superpixels.superpixel_labels(batch, rules)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(labels[-4:].cpu(), tensors.superpixel_labels(features, rules)[0])


@pytest.mark.parametrize("small", [0, 2**24])
def test_refinement_is_that_of_the_cpu(
    superpixels: ModuleType, photo: Callable[[str, int], Tensor], small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "room_for", lambda device: small)
    pixels = torch.stack([photo(name, 200)[:, :170] for name in ("astronaut", "coffee", "chelsea", "rocket")])
    labels, counts = tensors.superpixel_labels(superpixel_features(pixels, "paper"), Rules())
    offsets = offsets_of(counts)
    expected = tensors.refine(labels, offsets, pixels, 3)
    assert not torch.equal(expected, labels)
    refine = import_module("spit.kernels.triton").refine
    answers = [refine(labels.cuda(), offsets.cuda(), pixels.cuda(), 3) for _ in range(4)]
    for answer in answers:
        assert torch.equal(answer.cpu(), expected)


@pytest.mark.parametrize(("size", "cells"), [(1100, 1), (2048, 8), (256, 256), (8, 64)])
def test_cells_of_few_and_many_sites_are_those_of_the_cpu(size: int, cells: int) -> None:
    """Blocks of few sites stay small enough for registers."""
    flat = torch.randperm(size * size, generator=torch.Generator().manual_seed(cells))[:cells].sort().values
    sites = torch.stack([flat // size, flat % size], dim=-1)[None].int()
    got = import_module("spit.kernels.triton").nearest_sites(sites.cuda(), size, size)
    assert torch.equal(got.cpu(), tensors.nearest_sites(sites, size, size))
