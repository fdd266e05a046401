import math

import pytest
import torch
from torch import Tensor

from spit.contrast import CONTRAST_MEAN, CONTRAST_SHAPE, arcsinh, contrast

CHANNELS = range(3)


def curve(x: Tensor, channel: int, channels: int = 3) -> Tensor:
    """The Kumaraswamy curve of a channel, without the map to [−1, 1]."""
    return (contrast(x.expand(1, channels, 1, -1))[0, channel, 0] + 1) / 2


def formula(x: float, mean: float, shape: float) -> float:
    return 1 - (1 - x**shape) ** (-math.log(2) / math.log(1 - mean**shape))


@pytest.mark.parametrize(("channels", "channel"), [(3, 0), (3, 1), (3, 2), (1, 0), (4, 3)])
def test_it_is_the_formula_of_appendix_b(channels: int, channel: int) -> None:
    """With one channel, or more than three, it has the mean constants."""
    mean, shape = (values[channel] if channels == 3 else sum(values) / 3 for values in (CONTRAST_MEAN, CONTRAST_SHAPE))
    x = torch.linspace(0, 1, 256, dtype=torch.float64)
    expected = torch.tensor([formula(value, mean, shape) for value in x.tolist()], dtype=torch.float64)
    actual = curve(x, channel, channels)
    assert actual.dtype == torch.float64
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(curve(x.float(), channel, channels), expected.float(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("channel", CHANNELS)
def test_it_keeps_the_ends_and_takes_the_mean_to_a_half(channel: int, dtype: torch.dtype) -> None:
    answer = curve(torch.tensor([0, CONTRAST_MEAN[channel], 1], dtype=dtype), channel)
    assert answer.dtype == dtype
    assert answer[[0, 2]].tolist() == [0, 1]
    assert answer[1].item() == pytest.approx(0.5, abs=1e-6)


def test_it_rises() -> None:
    x = torch.cat([torch.linspace(0, 1, 4096), torch.tensor([1 - 2**-24, 2**-24])]).sort().values
    assert (curve(x, 1).diff() >= 0).all()


@pytest.mark.parametrize("channel", CHANNELS)
def test_it_has_finite_derivatives_everywhere(channel: int) -> None:
    x = torch.tensor([0.0, 1e-30, 1 / 255, 0.5, 254 / 255, 1 - 2**-24, 1.0], requires_grad=True)
    (slope,) = torch.autograd.grad(curve(x, channel).sum(), x)
    assert slope.isfinite().all()
    assert (slope >= 0).all()
    assert (slope[2:] > 0).all()
    inner = torch.linspace(0.05, 0.95, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: curve(t, channel), (inner,))


@pytest.mark.parametrize("floating", [torch.float32, torch.float64])
@pytest.mark.parametrize("channel", CHANNELS)
def test_it_takes_what_lies_beyond_as_the_nearer_end(channel: int, floating: torch.dtype) -> None:
    x = torch.tensor([-1e-4, -1e-30, 0.5, 1 + 2.4e-7, 1.0001], dtype=floating)
    leaf = x.clone().requires_grad_()
    answer = curve(x, channel)
    assert answer[[0, 1, 3, 4]].tolist() == [0, 0, 1, 1]
    assert torch.equal(curve(leaf, channel).detach(), answer)
    (slope,) = torch.autograd.grad(curve(leaf, channel).sum(), leaf)
    assert slope[[0, 1, 3, 4]].tolist() == [0, 0, 0, 0]
    assert slope[2] > 0


def test_arcsinh_keeps_the_ends_and_spreads_small_values() -> None:
    x = torch.tensor([-1.0, 0.0, 0.01, 1.0])
    expected = torch.tensor([-1.0, 0.0, math.asinh(0.278) / math.asinh(27.8), 1.0])
    torch.testing.assert_close(arcsinh(x, 27.8), expected)
    assert arcsinh(x, 0) is x
