import pytest
import torch

from spit.attribution.heads import class_row, layers_at_once, merge_heads
from spit.backbone import Heads, Spans, attention_maps
from spit.tokens import Tokens, offsets_of

FIRST = torch.tensor([[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
SECOND = torch.tensor([[[0.2, 0.8, 0.0], [0.1, 0.1, 0.8], [0.0, 0.5, 0.5]]])


def packed(counts, depth=2):
    rows = torch.randn(depth, 2, sum(counts), 3, 4, generator=torch.Generator().manual_seed(0)) * 2
    layers = [Heads(query, key, key, key) for query, key in rows]
    return layers, Spans.of(Tokens(torch.empty(sum(counts), 0), offsets_of(torch.tensor(counts))))


def test_two_layers_by_hand():
    """λ = 0.9, layer 2 leftmost: its class row is [.28, .72, 0]; layer 1 hands .28 of it on as [.55, .225, .225]."""
    row = class_row([FIRST, SECOND], 0.1, 0.9)
    torch.testing.assert_close(row, torch.tensor([[0.154, 0.783, 0.063]]))


def test_two_layers_by_hand_from_the_other_side():
    """Layer 1 leftmost, as the paper writes it: [.55, .225, .225] through the second layer."""
    row = class_row([FIRST, SECOND], 0.1, 0.9, "right")
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
        torch.testing.assert_close(class_row(maps, 0.1, 0.9, side), expected)
        assert class_row([torch.full((1, 6, 6), 1e6)] * 40, 0.1, 0.9, side).isfinite().all()


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
    row = class_row(merge_heads(layers, spans, "max"), 0.1, 0.9)
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
