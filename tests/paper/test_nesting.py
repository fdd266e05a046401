"""§2.2: π^(0) ⊑ π^(1) ⊑ … ⊑ π^(T), for any features and rules."""

import itertools
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spit.kernels.options import SelfLoop
from spit.tokenizers import SuperpixelTokenizer

Texture = Callable[[int, tuple[int, ...], int, int], Tensor]


def refines(fine: Tensor, coarse: Tensor) -> bool:
    """Every region of ``fine`` lies in one region of ``coarse``: no label of it meets two."""
    meets = torch.stack([fine.flatten(), coarse.flatten()], dim=1).unique(dim=0)
    return len(meets) == len(fine.unique())


def test_refines_can_say_no() -> None:
    fine = torch.tensor([[0, 0, 1, 2]])
    assert refines(fine, torch.tensor([[0, 0, 0, 1]]))
    assert not refines(fine, torch.tensor([[0, 1, 1, 1]]))
    assert not refines(torch.tensor([[0, 0, 0, 1]]), fine)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 100_000),
    shape=st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 20), st.sampled_from([1, 2, 6, 19])),
    tokenizer=st.builds(
        SuperpixelTokenizer,
        levels=st.integers(1, 5),
        compactness=st.sampled_from([0.0, 0.1, 1.0]),
        merge_threshold=st.sampled_from([0.0, 0.1, 0.5]),
        max_tokens=st.sampled_from([None, 1, 2, 5]),
        refine=st.sampled_from([0, 1, 3]),
        self_loop=st.sampled_from(["clipped", "paper", "none"]),
    ),
)
def test_each_level_refines_the_next(
    texture: Texture, seed: int, shape: tuple[int, ...], tokenizer: SuperpixelTokenizer
) -> None:
    levels = list(tokenizer.hierarchy(texture(seed, shape, 0, 255).to(torch.uint8)))
    for fine, coarse in itertools.pairwise(levels):
        for b in range(shape[0]):
            assert refines(fine.labels[b], coarse.labels[b])


@pytest.mark.parametrize("self_loop", ["clipped", "paper", "none"])
def test_photographs(photo: Callable[[str, int], Tensor], self_loop: SelfLoop) -> None:
    levels = list(SuperpixelTokenizer(self_loop=self_loop, merge_threshold=0.1, max_tokens=8)
                  .hierarchy(torch.stack([photo("coffee", 96), photo("chelsea", 96)])))
    assert len(levels) == 7
    for t, (fine, coarse) in enumerate(itertools.pairwise(levels)):
        for b in range(2):
            assert refines(fine.labels[b], coarse.labels[b]), t
            assert coarse.counts[b] < fine.counts[b]


def test_a_smaller_number_of_levels_is_a_prefix(photo: Callable[[str, int], Tensor]) -> None:
    image = photo("astronaut", 64)
    deep = SuperpixelTokenizer(levels=5).hierarchy(image)
    for levels in range(1, 5):
        assert torch.equal(SuperpixelTokenizer(levels=levels)(image).labels, deep[levels].labels)
