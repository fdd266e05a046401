import math

import pytest
import torch

from spit.contrast import CONTRAST_MEAN, CONTRAST_SHAPE, arcsinh, contrast, kumaraswamy

CHANNELS = list(zip(CONTRAST_MEAN, CONTRAST_SHAPE, strict=True))


@pytest.mark.parametrize(("mean", "shape"), CHANNELS)
def test_kumaraswamy_is_the_formula_of_appendix_b(mean: float, shape: float) -> None:
    b = -math.log(2) / math.log(1 - mean**shape)
    x = torch.linspace(0, 1, 256, dtype=torch.float64)
    expected = [1 - (1 - value**shape) ** b for value in x.tolist()]
    actual = kumaraswamy(x, mean, shape)
    assert actual.dtype == torch.float64
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)
    torch.testing.assert_close(kumaraswamy(x.float(), mean, shape), actual.float(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("mean", "shape"), CHANNELS)
def test_kumaraswamy_keeps_the_ends_and_takes_the_mean_to_a_half(
    mean: float, shape: float, dtype: torch.dtype
) -> None:
    answer = kumaraswamy(torch.tensor([0, mean, 1], dtype=dtype), mean, shape)
    assert answer.dtype == dtype
    assert answer[0] == 0
    assert answer[2] == 1
    assert answer[1].item() == pytest.approx(0.5, abs=1e-6)


def test_kumaraswamy_rises() -> None:
    x = torch.cat([torch.linspace(0, 1, 4096), torch.tensor([1 - 2**-24, 2**-24])]).sort().values
    assert (kumaraswamy(x, 0.456, 0.507).diff() >= 0).all()


def test_kumaraswamy_broadcasts_its_constants() -> None:
    x = torch.rand(256, generator=torch.Generator().manual_seed(0))
    means, shapes = (torch.tensor(values)[:, None] for values in (CONTRAST_MEAN, CONTRAST_SHAPE))
    table = kumaraswamy(x, means, shapes)
    assert table.shape == (3, 256)
    for row, (mean, shape) in zip(table, CHANNELS, strict=True):
        torch.testing.assert_close(row, kumaraswamy(x, mean, shape), rtol=0, atol=1e-6)


def test_kumaraswamy_has_finite_derivatives_everywhere() -> None:
    x = torch.tensor([0.0, 1e-30, 1 / 255, 0.5, 254 / 255, 1 - 2**-24, 1.0], requires_grad=True)
    for mean, shape in CHANNELS:
        (slope,) = torch.autograd.grad(kumaraswamy(x, mean, shape).sum(), x)
        assert slope.isfinite().all()
        assert (slope >= 0).all()
        assert (slope[2:] > 0).all()
    inner = torch.linspace(0.05, 0.95, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: kumaraswamy(t, 0.485, 0.539), (inner,))


@pytest.mark.parametrize("floating", [torch.float32, torch.float64])
def test_kumaraswamy_takes_what_lies_beyond_as_the_nearer_end(floating: torch.dtype) -> None:
    x = torch.tensor([-1e-4, -1e-30, 0.5, 1 + 2.4e-7, 1.0001], dtype=floating)
    leaf = x.clone().requires_grad_()
    for mean, shape in CHANNELS:
        answer = kumaraswamy(x, mean, shape)
        assert answer[[0, 1, 3, 4]].tolist() == [0, 0, 1, 1]
        assert torch.equal(kumaraswamy(leaf, mean, shape).detach(), answer)
        (slope,) = torch.autograd.grad(kumaraswamy(leaf, mean, shape).sum(), leaf)
        assert slope[[0, 1, 3, 4]].tolist() == [0, 0, 0, 0]
        assert slope[2] > 0


def test_kumaraswamy_has_the_same_values_with_and_without_derivatives() -> None:
    x = torch.linspace(0, 1, 256)
    assert torch.equal(kumaraswamy(x.clone().requires_grad_(), 0.485, 0.539).detach(), kumaraswamy(x, 0.485, 0.539))


def test_contrast_treats_each_channel_by_its_constants() -> None:
    images = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    answer = contrast(images)
    for c, (mean, shape) in enumerate(CHANNELS):
        torch.testing.assert_close(answer[:, c], 2 * kumaraswamy(images[:, c], mean, shape) - 1)
    ends = contrast(torch.tensor([0.0, 1.0]).view(1, 1, 1, 2).expand(1, 3, 1, 2))
    assert torch.equal(ends[0, 1, 0], torch.tensor([-1.0, 1.0]))


@pytest.mark.parametrize("channels", [1, 4])
def test_other_channel_counts_take_the_mean_constants(channels: int) -> None:
    images = torch.rand(1, channels, 4, 4, generator=torch.Generator().manual_seed(0))
    mean, shape = sum(CONTRAST_MEAN) / 3, sum(CONTRAST_SHAPE) / 3
    torch.testing.assert_close(contrast(images), 2 * kumaraswamy(images, mean, shape) - 1)


def test_arcsinh_keeps_the_ends_and_spreads_small_values() -> None:
    x = torch.tensor([-1.0, 0.0, 0.01, 1.0])
    expected = torch.tensor([-1.0, 0.0, math.asinh(0.278) / math.asinh(27.8), 1.0])
    torch.testing.assert_close(arcsinh(x, 27.8), expected)
    assert arcsinh(x, 0) is x
