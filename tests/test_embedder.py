import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spit.embedder import Embedder, put_class_token, resize_patches, take_class_token
from spit.features import FeatureExtractor
from spit.tokenizers import PatchTokenizer
from spit.tokens import Tokens, offsets_of


def test_class_token_comes_first_in_every_image():
    tokens = Tokens(torch.arange(6.0).view(3, 2), torch.tensor([0, 1, 3]))
    answer = put_class_token(tokens, torch.tensor([-1.0, -2.0]))
    assert answer.offsets.tolist() == [0, 2, 5]
    assert answer.values.tolist() == [[-1, -2], [0, 1], [-1, -2], [2, 3], [4, 5]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_take_is_the_inverse_of_put(counts):
    tokens = Tokens(torch.randn(sum(counts), 3), offsets_of(torch.tensor(counts)))
    class_token, others = take_class_token(put_class_token(tokens, torch.ones(3)))
    assert torch.equal(class_token, torch.ones(len(counts), 3))
    assert torch.equal(others.values, tokens.values)
    assert torch.equal(others.offsets, tokens.offsets)


def test_embedder_is_linear_and_every_parameter_learns():
    embedder = Embedder(5, 4)
    tokens = Tokens(torch.randn(7, 5), torch.tensor([0, 3, 7]))
    answer = embedder(tokens)
    expected = tokens.values @ embedder.projection.weight.T + embedder.projection.bias
    torch.testing.assert_close(take_class_token(answer)[1].values, expected)
    answer.values.square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in embedder.parameters())


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_residual_stream_keeps_the_parameters_precision():
    embedder, tokens = Embedder(5, 4), Tokens(torch.randn(2, 5), torch.tensor([0, 2]))
    with torch.backends.mkldnn.flags(enabled=False):  # oneDNN's half kernels need AMX rights that sandboxes withhold
        with torch.autocast("cpu", torch.bfloat16):
            assert embedder(tokens).values.dtype == torch.float32
        assert embedder.bfloat16()(tokens).values.dtype == torch.bfloat16


@pytest.mark.parametrize(("side", "wanted"), [(4, 5), (4, 8), (4, 4), (8, 4), (6, 4)])
def test_resized_patches_have_the_same_tokens(side, wanted):
    """φ samples the pixels of a patch at another side, and γ answers as before; where the pixels are fewer, too."""
    torch.manual_seed(0)
    pixels = min(side, wanted)
    images = torch.rand(1, 3, 4 * pixels, 4 * pixels)
    before, after = (FeatureExtractor(resolution=each, position_bins=2, gradients=False)(
        images, PatchTokenizer(pixels)(images)).values for each in (side, wanted))
    weight = torch.randn(7, before.shape[1])
    resized = resize_patches(weight, 3, side, wanted)
    torch.testing.assert_close(after @ resized.T, before @ weight.T, rtol=1e-4, atol=1e-4)
    assert torch.equal(resized[:, -4:], weight[:, -4:])


def test_patches_are_resized_there_and_back():
    weight = torch.randn(3, 3 * 16 + 5)
    torch.testing.assert_close(resize_patches(resize_patches(weight, 3, 4, 9), 3, 9, 4), weight)
