from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import spit
from spit import predictor
from spit.attribution import Flow, flow
from spit.attribution.flow import class_row, layers_at_once, merge_heads
from spit.backbone import Heads, Spans, attention, attention_maps
from spit.tokens import Tokens, offsets_of


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


def class_token(maps):
    """What a class-token ViT reads: the first row."""
    return torch.eye(maps[0].shape[-1])[:1].expand(len(maps[0]), -1)


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


def test_the_last_sixth_of_the_layers_is_left_out(small, images):
    deep, cut = small(depth=7), small(depth=7)
    del cut.backbone.blocks[6]
    cut.config = cut.config.replace(depth=6)
    all_layers = spit.explain(deep, images, Flow(skip=0))
    assert not torch.equal(spit.explain(deep, images, "flow"), all_layers)
    torch.testing.assert_close(spit.explain(deep, images, "flow"), spit.explain(cut, images, Flow(skip=0)))
    torch.testing.assert_close(spit.explain(deep, images, Flow(skip=1)), spit.explain(deep, images, "flow"))
    assert spit.explain(deep, images, Flow(skip=99)).shape == (3, 40, 40)  # the first layer stays
    shallow = small(depth=5)
    assert torch.equal(spit.explain(shallow, images, "flow"), spit.explain(shallow, images, Flow(skip=0)))


def test_options(small, images):
    model = small()
    nothing = spit.explain(model, images, Flow(strength=0))  # all stays in the class token
    assert not nothing.any()
    for options, message in (({"strength": 1.5}, "strength of at most 1, got 1.5"),
                             ({"merge": "min"}, "merge to be one of max, mean, got 'min'")):
        with pytest.raises(ValueError, match=message):
            Flow(**options)


def test_recording_changes_nothing_and_compiled_models_are_explained(small, images):
    model = small("patch")
    expected = spit.explain(model, images, "flow")
    model.backbone.compiled = model.backbone.run_blocks  # as torch.compile leaves it, without the wait
    assert torch.equal(spit.explain(model, images, "flow"), expected)


@pytest.mark.parametrize("at_once", [1, 2, 3, 99])
@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_layers_merged_together_are_those_merged_alone(small, images, tokenizer, at_once, as_on_a_gpu, monkeypatch):
    monkeypatch.setattr(flow, "layers_at_once", lambda *_: at_once)
    model = small(tokenizer, depth=5)
    torch.testing.assert_close(spit.explain(model, images, "flow"), dense(model, images, 0.9, "max"))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_a_gpu_is_asked_for_little_more_than_a_forward_pass(small, images, tokenizer, dtype, as_on_a_gpu):
    """Launches are what a pass of this size costs there; and the host waits no more often."""
    model = small(tokenizer, depth=12)
    pixels = images if dtype == torch.uint8 else images / 255
    with torch.no_grad(), Calls() as forward:
        model(pixels)
    with Calls() as explained:
        spit.explain(model, pixels, "flow")
    assert explained.counts.total() <= 1.3 * forward.counts.total()
    for waits in ("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select"):
        assert explained.counts[waits] == forward.counts[waits]


FIRST = torch.tensor([[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
SECOND = torch.tensor([[[0.2, 0.8, 0.0], [0.1, 0.1, 0.8], [0.0, 0.5, 0.5]]])


def packed(counts, depth=2):
    rows = torch.randn(depth, 2, sum(counts), 3, 4, generator=torch.Generator().manual_seed(0)) * 2
    layers = [Heads(query, key, key, key) for query, key in rows]
    return layers, Spans.of(Tokens(torch.empty(sum(counts), 0), offsets_of(torch.tensor(counts))))


def test_two_layers_by_hand():
    """λ = 0.9, layer 2 leftmost: its class row is [.28, .72, 0]; layer 1 hands .28 of it on as [.55, .225, .225]."""
    row = class_row([FIRST, SECOND], 0.1, 0.9, "left", class_token([FIRST]))
    torch.testing.assert_close(row, torch.tensor([[0.154, 0.783, 0.063]]))


def test_two_layers_by_hand_from_the_other_side():
    """Layer 1 leftmost, as the paper writes it: [.55, .225, .225] through the second layer."""
    row = class_row([FIRST, SECOND], 0.1, 0.9, "right", class_token([FIRST]))
    torch.testing.assert_close(row, torch.tensor([[0.55 * 0.28 + 0.225 * 0.09, 0.55 * 0.72 + 0.225 * (0.19 + 0.45),
                                                   0.225 * (0.72 + 0.55)]]))


def test_the_row_is_that_of_the_dense_product_and_never_overflows():
    maps = [torch.rand(2, 6, 6, generator=torch.Generator().manual_seed(layer)) for layer in range(5)]
    left = right = torch.eye(6)
    for layer in maps:
        step = 0.1 * torch.eye(6) + 0.9 * layer
        left, right = step @ left, right @ step
    for side, product in (("left", left), ("right", right)):
        expected = product[:, 0] / product[:, 0].sum(1, keepdim=True)
        torch.testing.assert_close(class_row(maps, 0.1, 0.9, side, class_token(maps)), expected)
        huge = [torch.full((1, 6, 6), 1e6)] * 40
        assert class_row(huge, 0.1, 0.9, side, class_token(huge)).isfinite().all()


@pytest.mark.parametrize("merge", ["max", "mean"])
@pytest.mark.parametrize("counts", [[4, 4], [5, 2, 7]])
def test_merged_heads_are_the_formula(counts, merge):
    layers, spans = packed(counts)
    got = merge_heads(layers, spans, merge)
    assert got.shape == (2, len(counts), max(counts), max(counts))
    for merged, layer in zip(got, layers, strict=True):
        for answer, maps, count in zip(merged, attention_maps(layer.query, layer.key, spans), counts, strict=True):
            expected = maps.amax(0) if merge == "max" else maps.mean(0)
            torch.testing.assert_close(answer[:count, :count], expected)
            assert not answer[:count, count:].any()


def test_an_image_that_fails_spoils_no_other():
    layers, spans = packed([2, 5])
    layers[0].query[2:] = torch.nan
    maps = merge_heads(layers, spans, "max")
    row = class_row(maps, 0.1, 0.9, "left", class_token(maps))
    assert row[0].isfinite().all()
    assert row[1].isnan().all()


def test_layers_wait_for_each_other_within_a_bound():
    spans = Spans(torch.empty(33), torch.empty(0), (197,) * 32, 197, True)

    def at_once(width, device):
        rows = torch.empty(32 * 197, width // 64, 64, device=device)
        return layers_at_once(Heads(rows, rows, rows, rows), spans)

    assert at_once(192, "meta") == 12  # all of a tiny model at 224²
    assert at_once(768, "meta") == 3
    assert at_once(768 * 64, "meta") == 1
    assert at_once(192, "cpu") == 1
