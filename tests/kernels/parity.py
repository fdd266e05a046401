"""Comparison of two hierarchies, for the tests of all backends."""

import torch

from spit.kernels import Levels


def assert_same(got: Levels, expected: Levels) -> None:
    assert len(got) == len(expected)
    for t, ((parents, counts), (right_parents, right_counts)) in enumerate(zip(got, expected, strict=True)):
        assert parents.dtype == right_parents.dtype == torch.int32
        assert counts.dtype == right_counts.dtype == torch.int64
        assert torch.equal(counts, right_counts), f"level {t}: {counts.tolist()} and {right_counts.tolist()}"
        assert torch.equal(parents, right_parents), f"level {t}"
