import pytest
import torch

import spit
from spit.backbone import attention


def dense(model, images, labels, monkeypatch):
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
        output.logits[range(len(labels)), labels].sum().backward()
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
    model.backbone.compiled = model.backbone.run_blocks
    torch.testing.assert_close(spit.explain(model, images, "relevance"), expected)
    assert all(parameter.grad is None for parameter in model.parameters())
