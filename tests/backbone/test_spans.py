import pytest
import torch

from spit.backbone import Spans
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
