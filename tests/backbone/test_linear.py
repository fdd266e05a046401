import pytest
import torch
from torch.nn import functional as F

from spit.backbone.linear import ROWS, Linear, frozen_weights, round_rows


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("gelu", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inference_and_training_have_the_same_product(bias, gelu, dtype):
    torch.manual_seed(0)
    layer = Linear(24, 40, bias=bias).to(dtype)
    values = torch.randn(7, 24, dtype=dtype)
    expected = F.linear(values, layer.weight, layer.bias)
    expected = F.gelu(expected) if gelu else expected
    torch.testing.assert_close(layer(values, gelu=gelu), expected, rtol=0, atol=0)
    with torch.inference_mode():
        torch.testing.assert_close(layer(values, gelu=gelu), expected, rtol=1e-5, atol=1e-6)
        layer.weight.data.mul_(2)  # nothing is kept of the weights
        doubled = F.linear(values, layer.weight, layer.bias)
        torch.testing.assert_close(layer(values), doubled, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_frozen_weights_leave_the_gradients_of_values(bias, dtype):
    torch.manual_seed(0)
    layer = Linear(24, 40, bias=bias).to(dtype)
    values = torch.randn(7, 24, dtype=dtype, requires_grad=True)
    [expected] = torch.autograd.grad(layer(values, gelu=True).square().sum(), values)
    with frozen_weights():
        answer = layer(values, gelu=True)
    answer.square().sum().backward()
    torch.testing.assert_close(values.grad, expected, rtol=1e-4, atol=1e-5)
    assert all(parameter.grad is None for parameter in layer.parameters())
    with frozen_weights(), torch.no_grad():
        torch.testing.assert_close(layer(values), layer(values.detach()), rtol=0, atol=0)


def test_autocast_is_obeyed():
    layer, values = Linear(24, 40), torch.randn(7, 24)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert layer(values, gelu=True).dtype == torch.bfloat16


def test_no_rows():
    with torch.no_grad():
        assert Linear(24, 40)(torch.empty(0, 24), gelu=True).shape == (0, 40)


def test_rows_are_rounded_up_but_in_training():
    values = torch.randn(ROWS + 1, 24)
    assert round_rows(values) is values
    with frozen_weights():
        assert len(round_rows(values)) == 2 * ROWS
    with torch.no_grad():
        rounded = round_rows(values)
        assert rounded.shape == (2 * ROWS, 24)
        assert torch.equal(rounded[: ROWS + 1], values)
        assert not rounded[ROWS + 1 :].any()
        assert len(round_rows(torch.ones(5000, 1))) == 5120  # 40 times 128
        for others in (values[:ROWS], values.double(), values[:0]):  # round, not by oneDNN, none
            assert round_rows(others) is others
