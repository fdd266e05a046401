import pytest
import torch

from attribution.games import generator
from spit.attribution.absence import ImageTokens
from spit.attribution.removal import SLOPE_BATCHES, Subsets
from spit.backbone import attention


@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_absent_tokens_are_not_in_the_sequence(small, images, tokenizer):
    model = small(tokenizer)
    _, features = model.tokenize(images[:1])
    count = len(features.values)
    present = torch.rand(9, count, generator=generator()) < 0.5
    present[0], present[1] = True, False
    seen = []
    ask = Subsets(model, ImageTokens(features.values), 2, batch=4, progress=seen.append)
    got = ask(present)
    with torch.no_grad():
        expected = [model.run(features.select(own))[0].softmax(1)[0, 2] for own in present]
    torch.testing.assert_close(got, torch.stack(expected), atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(got[0], model(images[:1]).softmax(1)[0, 2], atol=1e-6, rtol=1e-4)
    assert (ask.asked, seen) == (9, [4, 8, 9])
    model.compile(backend="eager")
    torch.testing.assert_close(Subsets(model, ImageTokens(features.values), 2)(present), got, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_slopes_are_those_of_gates_in_attention(small, images, tokenizer, monkeypatch):
    """By autograd through attention with ``g`` written into it."""
    model = small(tokenizer)
    _, features = model.tokenize(images[:1])
    count = len(features.values)
    present = torch.rand(SLOPE_BATCHES[0] + 2, count, generator=generator()) < 0.5
    present[0], present[1], present[1, 2] = True, False, True
    ask = Subsets(model, ImageTokens(features.values), 2)
    found = ask.slopes(present)
    assert found.shape == present.shape
    assert ask.asked == 3 * len(present)
    assert (found[~present] == 0).all()

    def gated(query, key, value, spans):
        q, k, v = (rows.transpose(0, 1) for rows in (query, key, value))
        scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5 + torch.cat([torch.zeros(1), gates])
        return (scores.softmax(-1) @ v).transpose(0, 1)

    monkeypatch.setattr(attention, "ragged_attention", gated)
    for row, slopes in zip(present, found.float(), strict=True):
        gates = torch.zeros(int(row.sum()), requires_grad=True)  # log g
        score = model.run(features.select(row))[0].log_softmax(1)[0, 2]
        [expected] = torch.autograd.grad(score, gates)
        torch.testing.assert_close(slopes[row], expected, atol=1e-6, rtol=1e-3)


def test_slopes_leave_no_gradients_and_inference_mode_is_no_obstacle(small, images):
    model = small()
    _, features = model.tokenize(images[:1])
    present = torch.ones(1, len(features.values), dtype=torch.bool)
    expected = Subsets(model, ImageTokens(features.values), 0).slopes(present)
    assert not expected.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    with torch.inference_mode():
        _, features = model.tokenize(images[:1])
        torch.testing.assert_close(Subsets(model, ImageTokens(features.values), 0).slopes(present), expected)
    model.backbone.compiled = model.backbone.run_blocks  # as compile() sets it
    torch.testing.assert_close(Subsets(model, ImageTokens(features.values), 0).slopes(present), expected)
