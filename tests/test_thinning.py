"""Which tokens of an image are kept."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from spit.partition import Partition
from spit.thinning import Budget, choose_tokens, curve_places, draw_tokens, spread_tokens
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer
from spit.tokens import Tokens, offsets_of


@settings(max_examples=30, deadline=None)
@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=6), budget=st.integers(1, 9), random=st.booleans())
def test_a_budget_keeps_exactly_that_many(counts: list[int], budget: int, random: bool) -> None:
    tokens = Tokens(torch.zeros(sum(counts), 1), offsets_of(torch.tensor(counts)))
    places = None if random else torch.arange(sum(counts)) // 2
    kept = tokens.select(choose_tokens(tokens, [budget] * len(tokens), places))
    assert kept.counts.tolist() == [min(count, budget) for count in counts]


def test_without_places_every_token_is_as_likely() -> None:
    torch.manual_seed(0)
    tokens = Tokens(torch.zeros(10, 1), torch.tensor([0, 6, 10]))
    draws = torch.stack([choose_tokens(tokens, [3] * len(tokens)) for _ in range(2000)])
    torch.testing.assert_close(draws.float().mean(0), torch.tensor([0.5] * 6 + [0.75] * 4), atol=0.05, rtol=0)
    assert len({tuple(draw.tolist()) for draw in draws[:, :6]}) == 20  # each of the subsets


def test_steps_along_an_order_are_even() -> None:
    tokens, places = Tokens(torch.zeros(9, 1), torch.tensor([0, 9])), torch.tensor([8, 7, 6, 5, 4, 3, 2, 1, 0])
    assert choose_tokens(tokens, [3], places).nonzero().flatten().tolist() == [0, 3, 6]


def test_a_quarter_of_a_grid_has_a_token_of_each_square_of_four() -> None:
    partition = PatchTokenizer(8)(torch.zeros(1, 3, 64, 64, dtype=torch.uint8))
    kept = spread_tokens(partition, 16).view(4, 2, 4, 2)
    assert kept.sum((1, 3)).eq(1).all()


def test_spread_tokens_leave_no_part_of_a_photo_without(photo: Callable[[str, int], Tensor]) -> None:
    partition = SuperpixelTokenizer()(torch.stack([photo(name, 128) for name in ("cat", "coffee")]))
    half = int(partition.counts.min()) // 2
    spread = spread_tokens(partition, half)
    assert [int(each.sum()) for each in spread.split(list(partition.host_counts))] == [half, half]
    boxes = partition.boxes().double()
    centers = (boxes[:, :2] + boxes[:, 2:]) / 2
    torch.manual_seed(0)
    random = choose_tokens(Tokens(torch.zeros(len(spread), 1), partition.offsets), [half, half])

    def gap(kept: Tensor) -> float:
        """The mean distance to the nearest token that is kept."""
        pieces = zip(centers.split(list(partition.host_counts)), kept.split(list(partition.host_counts)), strict=True)
        return float(torch.cat([torch.cdist(each, each[own]).amin(1) for each, own in pieces]).mean())

    assert gap(spread) < 0.9 * gap(random)


def test_a_photo_keeps_the_same_tokens_in_every_batch(photo: Callable[[str, int], Tensor]) -> None:
    images = torch.stack([photo(name, 96) for name in ("cat", "coffee", "astronaut")])
    tokenizer = SuperpixelTokenizer()
    alone = [spread_tokens(tokenizer(image[None]), 20) for image in images]
    assert torch.equal(torch.cat(alone), spread_tokens(tokenizer(images), 20))


def test_images_of_two_sizes(photo: Callable[[str, int], Tensor]) -> None:
    tokenizer = PatchTokenizer(16)
    parts = [tokenizer(photo("cat", 64)[None]), tokenizer(photo("coffee", 96)[None])]
    assert torch.equal(spread_tokens(Partition.cat(parts), 9), torch.cat([spread_tokens(part, 9) for part in parts]))


@pytest.mark.parametrize("spread", [(False, False), (True, False), (True, True)])
def test_training_draws_anew_within_each_budget(spread: tuple[bool, bool]) -> None:
    partition = PatchTokenizer(8)(torch.zeros(2, 3, 64, 64, dtype=torch.uint8))
    features = Tokens(torch.zeros(128, 1), partition.offsets)
    budgets = [Budget(32, spread[0]), Budget(100, spread[1])]
    torch.manual_seed(0)
    draws = [draw_tokens(partition, features, budgets) for _ in range(16)]
    assert all([int(image.sum()) for image in draw.split(64)] == [32, 64] for draw in draws)
    assert not torch.equal(draws[0], draws[1])
    rows = torch.stack([draw[:64].view(8, 8).sum(1) for draw in draws])
    assert (rows.float().std() < 1) == spread[0]


def test_places_follow_a_z() -> None:
    partition = PatchTokenizer(2)(torch.zeros(1, 3, 4, 4, dtype=torch.uint8))
    assert curve_places(partition).argsort().tolist() == [0, 1, 2, 3]
    assert not torch.equal(curve_places(partition), curve_places(partition, torch.tensor([3, 1])))
