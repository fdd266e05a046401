"""§2.2: a partition is complete and every region of it is 4-connected, at every level."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spit import load_image
from spit.partition import Partition
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, Tokenizer, VoronoiTokenizer, create_tokenizer

Texture = Callable[[int, tuple[int, ...], int, int], Tensor]
Pieces = Callable[[Tensor], int]


def assert_sound(part: Partition, pieces: Pieces) -> None:
    """Numbers 0 … N − 1, each used, each in one piece."""
    for labels, count in zip(part.labels, part.counts.tolist(), strict=True):
        assert labels.unique().tolist() == list(range(count))
        assert pieces(labels) == count
    assert int(part.sizes().min()) >= 1
    assert int(part.sizes().sum()) == sum(labels.numel() for labels in part.labels)


def test_pieces_are_counted_by_four_neighbors(pieces: Pieces) -> None:
    assert pieces(torch.tensor([[0, 1], [1, 0]])) == 4
    assert pieces(torch.tensor([[0, 0], [1, 0]])) == 2


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 100_000),
    shape=st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 20), st.sampled_from([1, 2, 6, 19])),
    tokenizer=st.builds(
        SuperpixelTokenizer,
        levels=st.integers(1, 4),
        compactness=st.sampled_from([0.0, 0.1, 0.7, 1.0]),
        merge_threshold=st.sampled_from([0.0, 0.1, 0.5]),
        max_tokens=st.sampled_from([None, 1, 2, 5]),
        refine=st.sampled_from([0, 1, 3]),
        similarity=st.sampled_from(["cosine", "euclidean", "variance"]),
        self_loop=st.sampled_from(["clipped", "paper", "none"]),
    ),
)
def test_superpixels_of_textures(
    texture: Texture, pieces: Pieces, seed: int, shape: tuple[int, ...], tokenizer: SuperpixelTokenizer
) -> None:
    for part in tokenizer.hierarchy(texture(seed, shape, 0, 255).to(torch.uint8)):
        assert_sound(part, pieces)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 100_000), height=st.integers(1, 24), width=st.integers(1, 24), share=st.floats(0, 1))
def test_voronoi_cells(texture: Texture, pieces: Pieces, seed: int, height: int, width: int, share: float) -> None:
    cells = max(1, round(share * height * width))
    part = VoronoiTokenizer(cells, seed=seed)(texture(seed, (2, 3, height, width), 0, 255).to(torch.uint8))
    assert part.counts.tolist() == [cells, cells]
    assert_sound(part, pieces)


@pytest.mark.parametrize("tokenizer", [
    SuperpixelTokenizer(),
    create_tokenizer("published", compactness=0.1),
    SuperpixelTokenizer(merge_threshold=0.1, max_tokens=50),
    VoronoiTokenizer(),
    VoronoiTokenizer(5000),
    PatchTokenizer(16),
    PatchTokenizer(7),
])
def test_photographs(photo: Callable[[str, int], Tensor], pieces: Pieces, tokenizer: Tokenizer) -> None:
    images = [photo("astronaut", 128), photo("coffee", 128), photo("rocket", 128)[:, :90]]
    assert_sound(tokenizer(images), pieces)


@pytest.mark.shared
def test_berkeley(shared_folder: Callable[[str], Path], pieces: Pieces) -> None:
    folder = shared_folder("data/bsds500") / "images" / "test"
    images = [load_image(path) for path in sorted(folder.glob("*.jpg"))[:30]]
    wide = [image for image in images if image.shape[2] > image.shape[1]][:2]
    tall = [image for image in images if image.shape[2] < image.shape[1]][:2]
    images = [wide[0], tall[0], tall[1], wide[1]]
    for part in list(SuperpixelTokenizer(compactness=0.1).hierarchy(images))[1:]:
        assert_sound(part, pieces)
    assert_sound(VoronoiTokenizer()(images), pieces)
