import pytest
import torch
from scipy.stats import spearmanr

from spit.evaluation.randomization import randomized, rank_correlation


def test_the_head_or_everything_is_shuffled(predictor):
    own = predictor("patch")
    before = {name: values.clone() for name, values in own.model.named_parameters()}
    for part, expected in (("head", {"head.linear.weight"}), ("model", None)):
        other = dict(randomized(own, part).model.named_parameters())
        changed = {name for name, values in other.items() if not torch.equal(values, before[name])}
        assert expected is None or changed <= expected | {"head.linear.bias"}
        assert "head.linear.weight" in changed
        for name, values in other.items():
            assert torch.equal(values.flatten().sort().values, before[name].flatten().sort().values)
        again = dict(randomized(own, part).model.named_parameters())
        assert all(torch.equal(again[name], values) for name, values in other.items())
    assert all(torch.equal(values, before[name]) for name, values in own.model.named_parameters())


def test_rank_correlation_is_scipys():
    random = torch.Generator().manual_seed(0)
    one, other = (torch.randint(0, 9, (3, 8, 9), generator=random).float() for _ in range(2))
    expected = [spearmanr(a.flatten(), b.flatten()).statistic for a, b in zip(one, other, strict=True)]
    assert rank_correlation(one, other).tolist() == pytest.approx(expected)
    assert rank_correlation(one, one.exp()).tolist() == pytest.approx([1] * 3)
    assert rank_correlation(one, torch.ones_like(one)).tolist() == [0] * 3
