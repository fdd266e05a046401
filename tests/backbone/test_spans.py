import pytest
import torch
from torch.nn import functional as F

from spit.backbone import Spans, Transformer, TransformerOptions
from spit.replay import STEP, round_up, step_of
from spit.tokens import Tokens, offsets_of


def spans_of(offsets):
    return Spans.of(Tokens(torch.empty(offsets[-1], 0), torch.tensor(offsets)))


def test_layout_of_a_hand_worked_batch():
    spans = spans_of([0, 2, 3, 6])
    assert spans.counts == (2, 1, 3)
    assert (len(spans), spans.longest, spans.uniform) == (3, 3, False)
    assert spans.image_of.tolist() == [0, 0, 1, 2, 2, 2]
    assert spans.padded_rows().tolist() == [0, 1, 3, 6, 7, 8]
    assert spans.padding_mask().flatten(1).tolist() == [[True, True, False], [True, False, False], [True, True, True]]
    assert spans.offsets.dtype == torch.int32
    assert spans.offsets.tolist() == [0, 2, 3, 6]


@pytest.mark.parametrize(("offsets", "uniform"), [([0, 4], True), ([0, 3, 6], True), ([0, 3, 5], False)])
def test_uniform(offsets, uniform):
    assert spans_of(offsets).uniform is uniform


def test_rows_are_rounded_to_few_numbers():
    rounded = {round_up(rows, step_of(rows)) for rows in range(1, 100_000)}
    assert len(rounded) < 250
    assert all(round_up(rows, step_of(rows)) < rows * (1 + 1 / 16) + STEP for rows in range(1, 100_000, 7))


@pytest.mark.parametrize("count", [1, 253, 254, 255, 256, 510, 16_383, 16_384, 70_000, 131_000])
def test_images_in_excess_have_few_rows_but_some(count):
    rounded = spans_of([0, count]).rounded()
    sizes = rounded.offsets.diff()[1:]
    assert len(rounded.image_of) % step_of(count) == 0
    assert 1 <= sizes.min() <= sizes.max() <= STEP
    assert torch.equal(rounded.image_of[count:], torch.repeat_interleave(torch.arange(1, len(rounded)), sizes))


def test_rounded_spans_have_the_same_answers_and_gradients():
    torch.manual_seed(0)
    network = Transformer(TransformerOptions(width=16, depth=2, heads=2, layer_scale=None)).double()
    counts = [300, 5, 40]
    values = torch.randn(sum(counts), 16, dtype=torch.float64)
    spans = Spans.of(Tokens(values, offsets_of(torch.tensor(counts))))
    rounded = spans.rounded()
    rows = len(rounded.image_of)
    assert rows == 512
    assert rounded.offsets.diff().tolist() == [300, 5, 40, 83, 84]

    def run(values, spans):
        network.zero_grad()
        answer = network.run_blocks(values, spans)[:345]
        (answer**3).sum().backward()
        return [answer.detach(), *(weight.grad.clone() for weight in network.parameters())]

    for got, expected in zip(run(F.pad(values, (0, 0, 0, rows - 345)), rounded), run(values, spans), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


def test_rows_of_no_image_are_not_seen():
    torch.manual_seed(0)
    network = Transformer(TransformerOptions(width=16, depth=2, heads=2)).eval()
    values = torch.randn(20, 16)
    offsets = torch.tensor([0, 4, 12], dtype=torch.int32)
    image_of = torch.tensor([0] * 4 + [1] * 16)
    with torch.no_grad():
        first, second = (network.run_blocks(torch.cat([values[:12], rest]), Spans(offsets, image_of, (), 10, False))
                         for rest in (values[12:], torch.ones(8, 16)))
        alone = network.run_blocks(values[:12], Spans.of(Tokens(values[:12], offsets.long())))
    assert torch.equal(first[:12], second[:12])
    torch.testing.assert_close(first[:12], alone)
