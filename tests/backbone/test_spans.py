import pytest
import torch

from spit.backbone import Spans, Transformer, TransformerOptions
from spit.kernels.recording import STEP, round_up, step_of
from spit.tokens import Tokens


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
