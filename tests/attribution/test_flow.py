import pytest
import torch

import spit
from spit.attribution import Flow, Rollout


def dense(model, images, strength, merge):
    """Flow from every head's recorded attention and full matrix products."""
    output = model(images, record=("attention",))
    values = []
    for b in range(len(output.logits)):
        product = None
        for layer in range(model.config.depth):
            maps = output.attention[layer][b].double()
            merged = maps.amax(0) if merge == "max" else maps.mean(0)
            step = (1 - strength) * torch.eye(len(merged), dtype=torch.float64) + strength * merged
            if merge == "mean":
                step = step / step.sum(1, keepdim=True)
            product = step if product is None else step @ product
        values.append(product[0, 1:] / product[0].sum())
    return output.partition.paint(torch.cat(values).float())


@pytest.mark.parametrize("tokenizer", ["patch", "voronoi", "superpixel"])
@pytest.mark.parametrize(("method", "strength", "merge"), [("flow", 0.9, "max"), ("rollout", 0.5, "mean")])
def test_equals_the_dense_product(small, images, tokenizer, method, strength, merge):
    model = small(tokenizer, depth=3)
    got = spit.explain(model, images, method)
    assert got.shape == (3, 40, 40)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, dense(model, images, strength, merge))


def test_a_model_without_attention_to_differ_by_says_nothing(small, images):
    """Zero queries: every token takes equally from all."""
    model = small("patch")
    for block in model.backbone.blocks:
        torch.nn.init.zeros_(block.attention.qkv.weight)
    got = spit.explain(model, images, "flow")
    torch.testing.assert_close(got, torch.full_like(got, got[0, 0, 0].item()))


def test_options(small, images):
    model = small()
    assert torch.equal(spit.explain(model, images, Flow(strength=0.5, merge="mean")),
                       spit.explain(model, images, Rollout()))
    nothing = spit.explain(model, images, Flow(strength=0))  # all stays in the class token
    assert not nothing.any()
    for options, message in (({"strength": 1.5}, "from 0 to 1, got 1.5"), ({"merge": "min"}, "max or mean")):
        with pytest.raises(ValueError, match=message):
            Flow(**options)


def test_recording_changes_nothing_and_compiled_models_are_explained(small, images):
    model = small("patch")
    expected = spit.explain(model, images)
    model.backbone.compiled = model.backbone.run_blocks  # as torch.compile leaves it, without the wait
    assert torch.equal(spit.explain(model, images), expected)
