import pytest
import torch

import spit
from spit.attribution.absence import image_tokens
from spit.attribution.removal import Subsets
from spit.attribution.token_rise import whole_image
from spit.backbone import attention
from spit.forward_pass import ForwardPass


def dense(model, images, labels, monkeypatch, score=lambda logits: logits):
    """Chefer's rule with attention in the graph, autograd's own gradients and full matrix products."""
    kept = []

    def explicit(query, key, value, spans):
        answers = []
        for q, k, v in zip(*(rows.split(spans.counts) for rows in (query, key, value)), strict=True):
            weights = (torch.einsum("nhd,mhd->hnm", q, k) / q.shape[-1] ** 0.5).softmax(-1)
            weights.retain_grad()
            kept.append(weights)
            answers.append(torch.einsum("hnm,mhd->nhd", weights, v))
        return torch.cat(answers)

    with monkeypatch.context() as patch:
        patch.setattr(attention, "ragged_attention", explicit)
        output = model(images, record=())
        score(output.logits)[range(len(labels)), labels].sum().backward()
    values = []
    for b in range(len(labels)):
        relevance = torch.eye(kept[b].shape[-1])
        for weights in kept[b :: len(labels)]:
            relevance = relevance + (weights.grad * weights).clamp(min=0).mean(0).detach() @ relevance
        values.append(relevance[0, 1:] / relevance[0].sum())
    return output.partition.paint(torch.cat(values))


@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_equals_autograd_through_explicit_attention(small, images, tokenizer, monkeypatch):
    model, labels = small(tokenizer, depth=3), [1, 4, 0]
    expected = dense(model, images, labels, monkeypatch)
    torch.testing.assert_close(spit.explain(model, images, "relevance", labels), expected, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_token_rise_shares_one_pass_for_relevance_and_slopes(small, images, tokenizer, monkeypatch):
    """Both of the log-probability; slopes as of a subset of all tokens."""
    model, labels = small(tokenizer, depth=3), [1, 4, 0]
    seen = ForwardPass(model, images, *model.tokenize(images))
    relevance, slopes = zip(*whole_image(seen, torch.tensor(labels)), strict=True)
    expected = dense(model, images, labels, monkeypatch, lambda logits: logits.log_softmax(1))
    torch.testing.assert_close(torch.stack(seen.paint(torch.cat(relevance).float())), expected, atol=1e-6, rtol=1e-4)
    for own, tokens, label in zip(slopes, image_tokens(seen), labels, strict=True):
        [found] = Subsets(model, tokens, label).slopes(torch.ones(1, len(own), dtype=torch.bool))
        torch.testing.assert_close(own, found, atol=1e-6, rtol=1e-4)


def test_the_class_matters_and_the_predicted_one_is_the_default(small, images):
    model = small()
    predicted = model(images).argmax(1)
    own = spit.explain(model, images, "relevance")
    assert torch.equal(own, spit.explain(model, images, "relevance", predicted))
    assert not torch.equal(own, spit.explain(model, images, "relevance", (predicted + 1) % 5))


def test_frozen_compiled_and_inference_mode(small, images):
    model = small()
    expected = spit.explain(model, images, "relevance")
    with torch.inference_mode():
        torch.testing.assert_close(spit.explain(model, images.clone(), "relevance"), expected)
    model.requires_grad_(False)
    torch.testing.assert_close(spit.explain(model, images, "relevance"), expected)
    model.compile(backend="eager")
    torch.testing.assert_close(spit.explain(model, images, "relevance"), expected)
    assert all(parameter.grad is None for parameter in model.parameters())
