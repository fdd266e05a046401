"""Masks as COCO's run lengths: back to the same mask, and as pycocotools writes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from spit.segmentation.rle import decode_mask, encode_mask

MASKS = arrays(bool, array_shapes(min_dims=2, max_dims=2, max_side=40)) | st.tuples(
    st.integers(1, 80), st.integers(1, 80), st.integers(0, 2**32)).map(lambda parts: np.kron(
        np.random.default_rng(parts[2]).random((-(-parts[0] // 9), -(-parts[1] // 9))) > 0.5,
        np.ones((9, 9), bool))[: parts[0], : parts[1]])


@given(MASKS)
def test_round_trip(mask: np.ndarray) -> None:
    assert np.array_equal(decode_mask(**encode_mask(mask)), mask)


@given(MASKS)
def test_as_pycocotools(mask: np.ndarray) -> None:
    coco = pytest.importorskip("pycocotools.mask")
    assert coco.encode(np.asfortranarray(mask, np.uint8))["counts"].decode() == encode_mask(mask)["counts"]


@pytest.mark.parametrize("counts", ["", "3", "22", "0o", "é", "1P"])
def test_runs_that_do_not_fill_the_mask(counts: str) -> None:
    with pytest.raises(ValueError, match="expected runs of 2 × 3 pixels"):
        decode_mask((2, 3), counts)
