"""Arguments of every kind: an answer that holds its contracts, or TypeError or ValueError in one line."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import spit
from fuzz.cases import cases
from spit import kernels

NUMBERS = st.one_of(st.integers(-3, 70), st.sampled_from([2**15, 2**31 - 1, 2**31, 2**63, 2**64, 10**30, -2**63]))
ANYTHING = st.one_of(NUMBERS, st.none(), st.booleans(), st.floats(), st.text(max_size=5), st.binary(max_size=4),
                     st.lists(NUMBERS | st.none() | st.floats() | st.text(max_size=3), max_size=3))
REFUSED = (TypeError, ValueError, spit.SpitError)


def refused(error: BaseException) -> None:
    assert str(error)
    assert "\n" not in str(error)


@cases(400)
@given(st.lists(st.integers(-2, 8), min_size=12, max_size=12), st.lists(st.integers(-1, 9), max_size=3),
       st.sampled_from([torch.int8, torch.int32, torch.int64, torch.uint8, torch.float32, torch.bool]))
def test_partitions(labels: list[int], counts: list[int], dtype: torch.dtype) -> None:
    maps = torch.tensor(labels).view(1, 3, 4).to(dtype)
    with kernels.backend("numba"):
        try:
            part = spit.Partition.of(maps, counts)
        except REFUSED as error:
            refused(error)
            return
        assert part.sizes().sum() == 12
        boxes = part.boxes()
        assert (boxes[:, :2] < boxes[:, 2:]).all()


@cases(300)
@given(st.sampled_from(["patch", "voronoi", "superpixel"]), st.data())
def test_tokenizers(name: str, data: st.DataObject) -> None:
    known = {"patch": ["size"], "voronoi": ["cells", "seed"],
             "superpixel": ["levels", "compactness", "merge_threshold", "max_tokens"]}[name]
    options = {key: data.draw(ANYTHING) for key in data.draw(st.lists(st.sampled_from(known), unique=True))}
    image = torch.arange(3 * 9 * 11, dtype=torch.uint8).view(1, 3, 9, 11)
    try:
        part = spit.create_tokenizer(name, **options)(image)
    except REFUSED as error:
        refused(error)
        return
    assert part.sizes().sum() == 99
    assert torch.equal(part.blocks[0].unique().long(), torch.arange(int(part.counts[0])))


@cache
def predictor() -> spit.Predictor:
    torch.manual_seed(0)
    return spit.Predictor(spit.SpitModel(spit.ModelConfig(
        tokenizer="patch", tokenizer_options={"size": 8}, resolution=2, position_bins=2, gradients=False, width=8,
        depth=1, heads=2, num_classes=3)).eval())


DTYPES = [torch.uint8, torch.int64, torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64,
          torch.float8_e5m2, torch.complex64]


@cases(300)
@given(st.lists(st.integers(0, 5), max_size=5), st.sampled_from(DTYPES),
       st.sampled_from([0, 0.5, 1, float("nan"), 255]), st.booleans())
def test_images(shape: list[int], dtype: torch.dtype, value: float, crop: bool) -> None:
    if dtype in (torch.uint8, torch.int64, torch.bool) and value != value:
        value = 1
    images = torch.full(shape, value).to(dtype)
    for given_images in (images, np.asarray(images.real.float()), [images]):
        try:
            logits = predictor()(given_images, crop=crop, size=16 if crop else None).logits
        except REFUSED as error:
            refused(error)
        else:
            assert logits.isfinite().all()


@cases(150)
@given(ANYTHING)
def test_targets(target: Any) -> None:
    try:
        found = spit.explain(predictor(), torch.zeros(1, 3, 16, 16), "relevance", target)
    except REFUSED as error:
        refused(error)
    else:
        assert found.shape == (1, 16, 16)


@cases(150)
@given(ANYTHING, ANYTHING)
def test_loading(source: Any, device: Any) -> None:
    with pytest.raises(REFUSED) as caught:
        spit.load(source, device)
    refused(caught.value)
