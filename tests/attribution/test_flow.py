from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import spit
from spit import predictor
from spit.attribution import Flow, Rollout, flow
from spit.backbone import attention


class Calls(TorchDispatchMode):
    """Counts what torch is asked to compute, by name."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.counts[function.overloadpacket._qualified_op_name] += 1
        return function(*args, **(kwargs or {}))


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """All images in one pass, padded batches in place of loops over images, and all layers merged at once."""
    monkeypatch.setattr(predictor, "ALONE", ())
    monkeypatch.setattr(attention, "_looped", attention._padded)
    monkeypatch.setattr(flow, "layers_at_once", lambda *_: 99)


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
            factors = (product, step) if merge == "max" else (step, product)  # the paper's order, and rollout's
            product = step if product is None else factors[0] @ factors[1]
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
    assert torch.equal(spit.explain(model, images, Flow(strength=0.5, merge="mean", side="left")),
                       spit.explain(model, images, Rollout()))
    nothing = spit.explain(model, images, Flow(strength=0))  # all stays in the class token
    assert not nothing.any()
    for options, message in (({"strength": 1.5}, "strength of at most 1, got 1.5"),
                             ({"merge": "min"}, "merge to be one of max, mean, got 'min'"),
                             ({"side": "top"}, "side to be one of left, right, got 'top'")):
        with pytest.raises(ValueError, match=message):
            Flow(**options)


def test_recording_changes_nothing_and_compiled_models_are_explained(small, images):
    model = small("patch")
    expected = spit.explain(model, images)
    model.backbone.compiled = model.backbone.run_blocks  # as torch.compile leaves it, without the wait
    assert torch.equal(spit.explain(model, images), expected)


@pytest.mark.parametrize("at_once", [1, 2, 3, 99])
@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_layers_merged_together_are_those_merged_alone(small, images, tokenizer, at_once, as_on_a_gpu, monkeypatch):
    monkeypatch.setattr(flow, "layers_at_once", lambda *_: at_once)
    model = small(tokenizer, depth=5)
    torch.testing.assert_close(spit.explain(model, images), dense(model, images, 0.9, "max"))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_a_gpu_is_asked_for_little_more_than_a_forward_pass(small, images, tokenizer, dtype, as_on_a_gpu):
    """Launches are what a pass of this size costs there; and the host waits no more often."""
    model = small(tokenizer, depth=12)
    pixels = images if dtype == torch.uint8 else images / 255
    with torch.no_grad(), Calls() as forward:
        model(pixels)
    with Calls() as explained:
        spit.explain(model, pixels)
    assert explained.counts.total() <= 1.2 * forward.counts.total()
    for waits in ("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select"):
        assert explained.counts[waits] == forward.counts[waits]
