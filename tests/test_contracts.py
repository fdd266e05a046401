"""DESIGN.md, contracts 1, 3 and 4 for every tokenizer: what a partition may and may not depend on."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spit.partition import Partition
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, Tokenizer, VoronoiTokenizer, create_tokenizer

TOKENIZERS = {
    "patch": PatchTokenizer(5),
    "voronoi": VoronoiTokenizer(12, seed=3),
    "superpixel": SuperpixelTokenizer(levels=3, compactness=0.1),
    "superpixel with a final merge": SuperpixelTokenizer(levels=2, merge_threshold=0.05, max_tokens=40),
    "tree": SuperpixelTokenizer(method="tree", compactness=0.3, max_tokens=30, refine=1),
    "published": create_tokenizer("published", levels=3),
}
EACH = pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
SQUARE = ("astronaut", "coffee", "chelsea", "rocket")


@pytest.fixture(scope="module")
def images(photo: Callable[[str, int], Tensor]) -> list[Tensor]:
    """Four squares, two strips, one of noise and one flat."""
    noise = torch.randint(0, 256, (3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    squares = [photo(name, 32) for name in SQUARE]
    return [*squares, squares[0][:, :20], squares[1][:, :, 3:30], noise, torch.full((3, 32, 32), 77, dtype=torch.uint8)]


@pytest.fixture(scope="module")
def alone(images: list[Tensor]) -> Callable[[Tokenizer], list[Tensor]]:
    """The labels of each image, tokenized on its own."""
    known: dict[Tokenizer, list[Tensor]] = {}

    def labels(tokenizer: Tokenizer) -> list[Tensor]:
        if tokenizer not in known:
            known[tokenizer] = [tokenizer(image).labels[0] for image in images]
        return known[tokenizer]

    return labels


def assert_labels(part: Partition, expected: list[Tensor]) -> None:
    assert len(part) == len(expected)
    for b, (labels, right) in enumerate(zip(part.labels, expected, strict=True)):
        assert torch.equal(labels, right), f"image {b}"
        assert part.counts[b] == right.max() + 1


class TestOneImageOnePartition:
    @EACH
    @settings(deadline=None, max_examples=15)
    @given(picks=st.lists(st.integers(0, 7), min_size=1, max_size=9))
    def test_in_any_list(
        self, images: list[Tensor], alone: Callable[[Tokenizer], list[Tensor]], tokenizer: Tokenizer, picks: list[int]
    ) -> None:
        assert_labels(tokenizer([images[i] for i in picks]), [alone(tokenizer)[i] for i in picks])

    @EACH
    @settings(deadline=None, max_examples=10)
    @given(order=st.permutations([0, 1, 2, 3, 6, 7]))
    def test_in_any_batch(
        self, images: list[Tensor], alone: Callable[[Tokenizer], list[Tensor]], tokenizer: Tokenizer, order: list[int]
    ) -> None:
        expected = [alone(tokenizer)[i] for i in order]
        assert_labels(tokenizer(torch.stack([images[i] for i in order])), expected)

    @EACH
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
    def test_as_floats(
        self, images: list[Tensor], alone: Callable[[Tokenizer], list[Tensor]], tokenizer: Tokenizer,
        dtype: torch.dtype
    ) -> None:
        assert_labels(tokenizer([(image.double() / 255).to(dtype) for image in images]), alone(tokenizer))

    @EACH
    @pytest.mark.parametrize("floating", [False, True])
    def test_in_any_layout(
        self, images: list[Tensor], alone: Callable[[Tokenizer], list[Tensor]], tokenizer: Tokenizer, floating: bool
    ) -> None:
        batch = torch.stack(images[:4])
        batch = batch.float() / 255 if floating else batch
        wide = torch.zeros(4, 3, 70, 67, dtype=batch.dtype)
        wide[:, :, 3:67:2, 1:65:2] = batch
        layouts = {
            "channels last": batch.to(memory_format=torch.channels_last),
            "from NHWC": batch.movedim(1, -1).contiguous().movedim(-1, 1),
            "every second pixel of a larger one": wide[:, :, 3:67:2, 1:65:2],
            "transposed twice": batch.mT.contiguous().mT,
            "every second image": batch.repeat_interleave(2, 0)[::2],
        }
        for name, images_in_layout in layouts.items():
            assert name == "every second pixel of a larger one" or torch.equal(images_in_layout, batch)
            assert_labels(tokenizer(images_in_layout), alone(tokenizer)[:4])
            assert_labels(tokenizer(list(images_in_layout)), alone(tokenizer)[:4])

    @EACH
    def test_expanded(
        self, images: list[Tensor], alone: Callable[[Tokenizer], list[Tensor]], tokenizer: Tokenizer
    ) -> None:
        assert_labels(tokenizer(images[2][None].expand(3, -1, -1, -1)), [alone(tokenizer)[2]] * 3)
        grey = images[2][:1].expand(3, -1, -1)
        assert torch.equal(tokenizer(grey).labels, tokenizer(grey.contiguous()).labels)

    @EACH
    @pytest.mark.usefixtures("torch_threads")
    def test_on_any_number_of_threads(
        self, images: list[Tensor], alone: Callable[[Tokenizer], list[Tensor]], tokenizer: Tokenizer
    ) -> None:
        for _ in range(3):
            assert_labels(tokenizer(images), alone(tokenizer))

    @EACH
    def test_whatever_the_random_state_which_stays_as_it_was(
        self, images: list[Tensor], alone: Callable[[Tokenizer], list[Tensor]], tokenizer: Tokenizer
    ) -> None:
        for seed in (1, 2):
            torch.manual_seed(seed)
            np.random.seed(seed)
            random.seed(seed)
            before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
            assert_labels(tokenizer(images), alone(tokenizer))
            assert torch.equal(torch.get_rng_state(), before[0])
            assert np.array_equal(np.random.get_state()[1], before[1])
            assert random.getstate() == before[2]

    @EACH
    def test_with_gradients_and_in_inference_mode(
        self, images: list[Tensor], alone: Callable[[Tokenizer], list[Tensor]], tokenizer: Tokenizer
    ) -> None:
        floats = (torch.stack(images[:2]).float() / 255).requires_grad_()
        assert_labels(tokenizer(floats), alone(tokenizer)[:2])
        with torch.inference_mode():
            assert_labels(tokenizer(floats), alone(tokenizer)[:2])
            assert_labels(tokenizer(floats * 1), alone(tokenizer)[:2])


def test_images_have_partitions_of_their_own(
    images: list[Tensor], alone: Callable[[Tokenizer], list[Tensor]]
) -> None:
    """Or the tests above would pass for labels that ignore the image."""
    for name in ("voronoi", "superpixel", "published"):
        maps = alone(TOKENIZERS[name])
        for i in (0, 1, 2, 3, 6, 7):
            for j in (0, 1, 2, 3, 6, 7):
                assert i == j or not torch.equal(maps[i], maps[j])


class TestInputsAreNeverModified:
    @EACH
    @pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
    @pytest.mark.parametrize("batch", [1, 3])
    def test_pixels(self, images: list[Tensor], tokenizer: Tokenizer, dtype: torch.dtype, batch: int) -> None:
        given = torch.stack(images[:batch])
        given = given if dtype == torch.uint8 else given.to(dtype) / 255
        before, version = given.clone(), given._version
        tokenizer(given)
        tokenizer(list(given))
        assert torch.equal(given, before)
        assert given._version == version

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
    def test_by_the_hierarchy(self, images: list[Tensor], dtype: torch.dtype) -> None:
        given = images[0][None] if dtype == torch.uint8 else images[0][None] / 255
        before = given.clone()
        hier = SuperpixelTokenizer(levels=2).hierarchy(given)
        parents = [level.clone() for level in hier.parents]
        hier[1].boundaries(), hier[2].boxes(), hier[2].paint(torch.zeros(int(hier.counts[2, 0])))
        assert torch.equal(given, before)
        assert all(map(torch.equal, hier.parents, parents))

    def test_an_answer_is_not_a_view_of_a_table(self, images: list[Tensor]) -> None:
        """Writing into one answer changes no other."""
        for tokenizer in TOKENIZERS.values():
            first = tokenizer(images[0])
            kept = first.labels.clone()
            first.labels.zero_()
            assert torch.equal(tokenizer(images[0]).labels, kept)


class TestBadImages:
    @EACH
    @pytest.mark.parametrize(("bad", "error", "message"), [
        (torch.full((3, 8, 8), torch.nan), ValueError, "nan"),
        (torch.tensor([0.1, torch.inf]).expand(3, 8, 2), ValueError, "from 0.1 to inf"),
        (torch.tensor([0.1, -torch.inf]).expand(3, 8, 2), ValueError, "from -inf to 0.1"),
        (torch.tensor([-1.0, 1.0]).expand(3, 8, 2), ValueError, "from -1 to 1"),
        (torch.tensor([0.0, 1.01]).expand(3, 8, 2), ValueError, "from 0 to 1.01"),
        (torch.zeros(8, 8), ValueError, r"\(8, 8\)"),
        (torch.zeros(2, 2, 3, 8, 8), ValueError, r"\(2, 2, 3, 8, 8\)"),
        (torch.zeros(8, 8, 3), ValueError, r"channels first.*\(1, 8, 8, 3\).*movedim"),
        (torch.zeros(3, 8, 8, dtype=torch.int32), TypeError, "torch.int32"),
        (torch.zeros(3, 8, 8, dtype=torch.bool), TypeError, "torch.bool"),
        (torch.zeros(3, 0, 8), ValueError, r"\(1, 3, 0, 8\)"),
        ([], ValueError, "empty list"),
        (["cat.jpg"], TypeError, "got str"),
        (np.zeros((3, 8, 8), np.uint8), TypeError, "got ndarray"),
        ([torch.zeros(3, 8, 8), torch.full((3, 8, 8), 2.0)], ValueError, "from 0 to 2"),
    ])
    def test_are_named(self, tokenizer: Tokenizer, bad: object, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            tokenizer(bad)
        if isinstance(tokenizer, SuperpixelTokenizer):
            with pytest.raises(error, match=message):
                tokenizer.hierarchy(bad)

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
    def test_a_device_without_kernels_is_named(self, dtype: torch.dtype) -> None:
        with pytest.raises(ValueError, match="meta"):
            SuperpixelTokenizer()(torch.zeros(1, 3, 8, 8, dtype=dtype, device="meta"))
