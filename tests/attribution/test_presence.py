import pytest
import torch

from attribution.games import generator
from spit.attribution.absence import ImageTokens
from spit.attribution.presence import BATCHES, presence_slopes
from spit.backbone import attention


@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_slopes_are_those_of_gates_in_attention(small, images, tokenizer, monkeypatch):
    """By autograd through attention with ``g`` written into it."""
    model = small(tokenizer)
    _, features = model.tokenize(images[:1])
    count = len(features.values)
    present = torch.rand(BATCHES[0] + 2, count, generator=generator()) < 0.5
    present[0], present[1], present[1, 2] = True, False, True
    found = presence_slopes(model, ImageTokens(features.values), present, 2)
    assert found.shape == present.shape
    assert (found[~present] == 0).all()

    def gated(query, key, value, spans):
        q, k, v = (rows.transpose(0, 1) for rows in (query, key, value))
        scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5 + torch.cat([torch.zeros(1), gates])
        return (scores.softmax(-1) @ v).transpose(0, 1)

    monkeypatch.setattr(attention, "ragged_attention", gated)
    for own, slopes in zip(present, found, strict=True):
        gates = torch.zeros(int(own.sum()), requires_grad=True)  # log g
        score = model.run(features.select(own))[0].log_softmax(1)[0, 2]
        [expected] = torch.autograd.grad(score, gates)
        torch.testing.assert_close(slopes[own], expected, atol=1e-6, rtol=1e-3)


def test_no_gradients_are_left_and_inference_mode_is_no_obstacle(small, images):
    model = small()
    _, features = model.tokenize(images[:1])
    present = torch.ones(1, len(features.values), dtype=torch.bool)
    expected = presence_slopes(model, ImageTokens(features.values), present, 0)
    assert not expected.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    with torch.inference_mode():
        _, features = model.tokenize(images[:1])
        torch.testing.assert_close(presence_slopes(model, ImageTokens(features.values), present, 0), expected)
    model.backbone.compiled = model.backbone.run_blocks  # as compile() sets it
    torch.testing.assert_close(presence_slopes(model, ImageTokens(features.values), present, 0), expected)
