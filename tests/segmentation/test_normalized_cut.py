"""The cut on graphs that can be worked out by hand."""

import pytest
import torch
from torch import Tensor

from spit.segmentation.normalized_cut import WEAK, _fiedler, normalized_cut, own_threshold, standardize
from spit.tokens import Tokens, offsets_of


def fiedler(tokens: Tokens, tau: float | None = None) -> Tensor:
    return normalized_cut(tokens, tau)[0]


def cliques(*sizes: int) -> Tokens:
    """Tokens of one image, all alike within a clique and orthogonal between them."""
    rows = torch.eye(len(sizes)).repeat_interleave(torch.tensor(sizes), dim=0)
    return Tokens(rows, torch.tensor([0, sum(sizes)]))


@pytest.mark.parametrize(("small", "large"), [(1, 2), (2, 3), (4, 12)])
def test_two_cliques(small: int, large: int) -> None:
    """x is constant on each; D-orthogonal to 1, so a d_a x_a = −b d_b x_b; standardised √(b/a) and −√(a/b)."""
    tokens = cliques(large, small)
    vector = fiedler(tokens)
    inside, outside = vector[large:], vector[:large]
    assert (inside > 0).all()  # the smaller clique has the larger entries: TokenCut's foreground
    torch.testing.assert_close(inside, inside[:1].expand(small))
    degrees = small + WEAK * large, large + WEAK * small
    assert float(small * degrees[0] * inside[0]) == pytest.approx(-float(large * degrees[1] * outside[0]), rel=1e-6)
    values = standardize(vector, tokens.offsets)
    torch.testing.assert_close(values[large:], torch.full((small,), (large / small) ** 0.5, dtype=torch.float64))
    torch.testing.assert_close(values[:large], torch.full((large,), -((small / large) ** 0.5), dtype=torch.float64))


def test_the_threshold_decides_who_is_joined() -> None:
    rows = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])  # cosines .8, .6, 0; .96 in the middle
    tokens = Tokens(rows, torch.tensor([0, 4]))
    path = fiedler(tokens, tau=0.7)  # a path of four: antisymmetric
    torch.testing.assert_close(path, -path.flip(0))
    assert not fiedler(tokens, tau=-0.5).any()  # all joined: nothing to cut


def test_an_image_s_own_threshold_by_hand() -> None:
    """Two and one alike: of nine cosines five are 1 and four 0, so 5/9 − ¼ √(5/9 · 4/9)."""
    tokens = cliques(2, 1).values.double()
    tau = own_threshold((tokens @ tokens.T)[None], torch.tensor([3]))
    assert float(tau) == pytest.approx(5 / 9 - 20**0.5 / 36, abs=1e-12)


def test_own_threshold_is_the_default_and_behind_the_mask() -> None:
    rows = torch.randn(50, 6, generator=torch.Generator().manual_seed(4)) + 0.5
    tokens = Tokens(rows, torch.tensor([0, 50]))
    unit = torch.nn.functional.normalize(rows.double(), dim=1)
    cosines = unit @ unit.T
    tau = float(cosines.mean() - cosines.std(correction=0) / 4)
    assert torch.equal(fiedler(tokens), fiedler(tokens, tau))
    assert float(normalized_cut(tokens)[1]) == pytest.approx(tau, abs=1e-14)
    assert normalized_cut(tokens, 0.25)[1].tolist() == [0.25]
    assert not torch.equal(fiedler(tokens), fiedler(tokens, tau + 0.2))
    padded = torch.nn.functional.pad(cosines, (0, 9, 0, 9))[None]
    assert float(own_threshold(padded, torch.tensor([50]))) == pytest.approx(tau, abs=1e-14)


def test_tokens_alike_but_for_rounding_are_not_cut() -> None:
    rows = torch.randn(1, 192, generator=torch.Generator().manual_seed(5)).repeat(60, 1)
    rows = rows * (1 + 1e-6 * torch.rand(rows.shape, generator=torch.Generator().manual_seed(6)))
    assert not fiedler(Tokens(rows, torch.tensor([0, 60]))).any()


def test_equals_the_generalised_problem() -> None:
    tokens = Tokens(torch.randn(40, 6, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 40]))
    vector = fiedler(tokens, tau=0.3)
    unit = torch.nn.functional.normalize(tokens.values.double(), dim=1)
    weights = torch.where(unit @ unit.T > 0.3, 1.0, WEAK).double()
    degree = weights.sum(1)
    ratio = ((torch.diag(degree) - weights) @ vector) / (degree * vector)
    torch.testing.assert_close(ratio, ratio[:1].expand(40), rtol=1e-4, atol=1e-7)
    values = torch.linalg.eigvalsh(torch.eye(40) - weights / degree.sqrt() / degree.sqrt()[:, None])
    assert float(ratio[0]) == pytest.approx(float(values[1]), abs=1e-7)
    assert vector[vector.abs().argmax()] > 0


def test_an_image_is_cut_as_if_alone() -> None:
    generator = torch.Generator().manual_seed(2)
    images = [torch.randn(count, 8, generator=generator) for count in (30, 1, 77, 2)]
    packed = Tokens(torch.cat(images), offsets_of(torch.tensor([30, 1, 77, 2])))
    alone = [fiedler(Tokens(image, torch.tensor([0, len(image)]))) for image in images]
    assert torch.equal(fiedler(packed), torch.cat(alone))


@pytest.mark.parametrize("tau", [None, 1 / 3])
def test_padding_as_a_gpu_has_it_changes_nothing_that_shows(tau: float | None) -> None:
    generator = torch.Generator().manual_seed(3)
    images = [torch.randn(count, 8, generator=generator, dtype=torch.float64) for count in (30, 77, 2)]
    padded = torch.nn.utils.rnn.pad_sequence(images, batch_first=True)
    real = torch.arange(77) < torch.tensor([30, 77, 2])[:, None]
    for vector, image in zip(_fiedler(padded, real, tau)[0], images, strict=True):
        alone = fiedler(Tokens(image, torch.tensor([0, len(image)])), tau)
        torch.testing.assert_close(vector[: len(image)], alone, rtol=0, atol=1e-9)
        assert not vector[len(image) :].any()


def test_values_that_are_all_the_same_standardise_to_zero() -> None:
    offsets = torch.tensor([0, 1, 4])
    values = standardize(torch.tensor([3.0, 0.1, 0.1, 0.1], dtype=torch.float64), offsets)
    assert values.tolist() == [0, 0, 0, 0]
