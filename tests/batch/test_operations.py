"""Operations: rows as the predictor answers, in any batch, and rejects with a reason."""

import io

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image

import spit
from batch.conftest import picture
from spit.batch.operations import Decoded, Operation, Rejected
from spit.batch.options import OPERATIONS, Work
from spit.data.images import load_image
from spit.predictor import Predictor
from spit.segmentation.rle import decode_mask

FILES = [picture(0), picture(1, 90, 50), picture(2, 20, 70)]
BATCH = {"key": ["a", "b", "c", "bad"], "bytes": [*FILES, b"no image"]}
TIMES = ("decode_seconds", "seconds")


@pytest.mark.parametrize("op", OPERATIONS)
def test_rows_fit_the_schema(op: str, predictor: Predictor) -> None:
    operation = Operation(predictor, Work(op))
    rows = operation(BATCH)
    assert rows["error"][:3] == [None] * 3
    assert rows["error"][3].startswith("bad: expected an image")
    assert rows["width"] == [40, 90, 20, None]
    assert rows["sha256"][3] is not None
    found = pa.table({name: rows[name][:3] for name in operation.schema.names}, schema=operation.schema)
    assert all(found[name].null_count == 0 for name in operation.schema.names)


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_row_depends_on_its_image_alone(op: str, predictor: Predictor) -> None:
    operation = Operation(predictor, Work(op))
    together = operation(BATCH)
    for index in range(3):
        alone = operation({name: values[index : index + 1] for name, values in BATCH.items()})
        for name in together:
            assert name in TIMES or alone[name] == together[name][index : index + 1], name


def test_answers_are_the_predictors(predictor: Predictor) -> None:
    image = load_image(FILES[1])
    seen = predictor(image, crop=True)
    rows = Operation(predictor, Work("classify", top=2))(BATCH)
    assert [(one["name"], one["probability"]) for one in rows["top"][1]] == seen.top(2)[0]
    assert rows["tokens"][1] == int(seen.partition.counts[0])
    vectors = Operation(predictor, Work("embed"))(BATCH)["vector"]
    assert np.array_equal(np.float16(vectors[1]), seen.class_token[0].half().numpy())
    found = Operation(predictor, Work("segment"))(BATCH)
    whole = spit.segment(predictor, image)
    assert found["mask"][1]["size"] == [50, 90]
    assert np.array_equal(decode_mask(**found["mask"][1]), whole.mask[0].numpy())
    explained = Operation(predictor, Work("explain", method="flow"))(BATCH)
    values = seen.explain("flow")[0]
    grey = np.asarray(Image.open(io.BytesIO(explained["map"][1]))) / 255
    low, high = explained["low"][1], explained["high"][1]
    assert np.abs(low + grey * (high - low) - values.numpy()).max() <= (high - low) / 255
    labels = Operation(predictor, Work("tokenize"))(BATCH)["labels"][1]
    partition = predictor.model.tokenizer(image)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(labels))), partition.blocks[0][0].numpy())


@pytest.mark.parametrize("size", [None, 32, 300])
def test_decoding_is_the_predictors_square(predictor: Predictor, size: int | None) -> None:
    operation = Operation(predictor, Work("embed"), size)
    for data in FILES[:3]:
        found = operation.decode("key", data)
        assert isinstance(found, Decoded)
        assert found.image.is_contiguous()
        assert torch.equal(found.image, predictor.square(load_image(data), size))


def test_sizes(predictor: Predictor) -> None:
    rows = Operation(predictor, Work("tokenize"), size=16)(BATCH)
    assert Image.open(io.BytesIO(rows["labels"][1])).size == (29, 16)
    assert rows["width"][1] == 90
    assert Operation(predictor, Work("embed"), size=48).settings()["size"] == 48


def test_an_image_that_fails_does_so_alone(predictor: Predictor) -> None:
    operation = Operation(predictor, Work("embed"))
    images = [operation.decode(key, data) for key, data in zip("abc", FILES, strict=True)]
    assert all(isinstance(one, Decoded) for one in images)
    images[1] = images[1]._replace(image=torch.zeros(5, 32, 32, dtype=torch.uint8))  # no model of ours takes these
    found = operation.answer(images)
    assert [isinstance(one, Rejected) for one in found] == [False, True, False]
    assert found[1].error.startswith("b: ")
    assert "\n" not in found[1].error


def test_limits(predictor: Predictor) -> None:
    rows = Operation(predictor, Work("embed", max_pixels=2000))(BATCH)
    assert [error is None for error in rows["error"]] == [True, False, True, False]
    assert "b: expected no more than the limit of 2,000 pixels" in rows["error"][1]


def test_settings_tell_operations_apart(predictor: Predictor) -> None:
    ways = [Work("embed"), Work("classify"), Work("classify", top=2), Work("explain"), Work("explain", method="flow"),
            Work("segment"), Work("segment", method="cut")]
    told = [Operation(predictor, work).settings() for work in ways]
    assert all(one != other for index, one in enumerate(told) for other in told[:index])
    other = predictor.with_tokenizer("patch", size=8)
    assert Operation(other, Work("embed")).settings() != told[0]


@pytest.mark.parametrize(("options", "told"), [
    ({"op": "classfy"}, "did you mean 'classify'"), ({"op": "explain", "method": "flaw"}, "did you mean 'flow'"),
    ({"op": "segment", "method": "flow"}, "head, cut, both"), ({"op": "embed", "method": "flow"}, "expected no method"),
    ({"top": 0}, "at least 1")])
def test_options_are_checked(options: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Work(**options)
