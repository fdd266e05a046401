"""Attention of packed images, as torch's own functions compute it for each alone."""

import pytest
import torch
from torch import Tensor, nn

from spit.backbone import Heads, Spans
from spit.seams.attention import WatchedAttention
from spit.tokens import Tokens

COUNTS = (3, 7, 1)


@pytest.fixture
def spans() -> Spans:
    offsets = torch.tensor([0, *COUNTS]).cumsum(0)
    return Spans.of(Tokens(torch.zeros(sum(COUNTS), 1), offsets))


@pytest.mark.parametrize("batch_first", [True, False])
def test_multihead_attention_of_packed_images(spans: Spans, batch_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(8, 2, batch_first=batch_first).eval()
    nn.init.normal_(layer.in_proj_bias)
    images = [torch.randn(count, 8) for count in COUNTS]

    def run(rows: Tensor) -> Tensor:
        rows = rows[None] if batch_first else rows[:, None]
        out: Tensor = layer(rows, rows, rows, need_weights=False)[0]
        return out.flatten(0, 1)

    alone = torch.cat([run(image) for image in images])
    seen: list[Heads] = []
    watched = WatchedAttention(spans, True, observe=seen.append)
    with watched:
        packed = run(torch.cat(images))
    assert watched.calls == len(seen) == 1
    torch.testing.assert_close(packed, alone)


@pytest.mark.parametrize("change", ["weights", "keys", "mask"])
def test_other_attention_of_that_layer_is_left_to_torch(spans: Spans, change: str) -> None:
    layer, rows = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(1, sum(COUNTS), 8)
    mask = torch.zeros(sum(COUNTS), sum(COUNTS)) if change == "mask" else None
    keys = rows.clone() if change == "keys" else rows
    expected = layer(rows, keys, keys, need_weights=change == "weights", attn_mask=mask)[0]
    watched = WatchedAttention(spans, True)
    with watched:
        got = layer(rows, keys, keys, need_weights=change == "weights", attn_mask=mask)[0]
    assert not watched.calls
    torch.testing.assert_close(got, expected)


def test_dropout_inside_of_it_is_refused(spans: Spans) -> None:
    layer, rows = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True), torch.randn(1, sum(COUNTS), 8)
    with WatchedAttention(spans, True), pytest.raises(ValueError, match="set the backbone's attention dropout to 0"):
        layer(rows, rows, rows, need_weights=False)
