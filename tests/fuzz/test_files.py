"""Damaged files: every one is read, or refused by the error of its reader in one line."""

import io
import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from fuzz.cases import cases
from spit.config import ModelConfig
from spit.data.images import load_image
from spit.documents import read_json
from spit.errors import ImageError, SpitError, WeightsError
from spit.interop.timm import from_timm
from spit.model import SpitModel
from spit.registry import load_model
from spit.training.recipe import Recipe
from spit.weights import CONFIG, save

FORMATS = [("PNG", "RGB", {}), ("PNG", "P", {}), ("JPEG", "RGB", {}), ("JPEG", "L", {"progressive": True}),
           ("GIF", "P", {}), ("BMP", "RGB", {}), ("PPM", "RGB", {}), ("WEBP", "RGB", {"lossless": True}),
           ("TIFF", "RGB", {}), *(("TIFF", "RGB", {"compression": name}) for name in
                                  ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"))]
NUMBERS = st.one_of(st.integers(-5, 5), st.sampled_from([2**15, 2**24, 2**31, 2**63, 10**30, -2**63]))
VALUES = st.recursive(st.none() | st.booleans() | NUMBERS | st.floats() | st.text(max_size=8),
                      lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner,
                                                                                  max_size=3), max_leaves=6)
DAMAGE = st.lists(st.tuples(st.sampled_from(["set", "cut", "insert", "repeat"]), st.integers(0, 2**16),
                            st.binary(min_size=1, max_size=8)), max_size=5)


@cache
def sound(index: int) -> bytes:
    kind, mode, options = FORMATS[index]
    file = io.BytesIO()
    Image.linear_gradient("L").resize((24, 17)).convert(mode).save(file, kind, **options)
    return file.getvalue()


def damaged(data: bytes, changes: list[tuple[str, int, bytes]]) -> bytes:
    for how, place, new in changes:
        at = place % (len(data) + 1)
        if how == "set":
            data = data[:at] + new + data[at + len(new):]
        elif how == "cut":
            data = data[:at] + data[at + len(new) * 7:]
        elif how == "insert":
            data = data[:at] + new + data[at:]
        else:
            data = data[:at] + data[at // 2 : at] + data[at:]
    return data


def one_line(error: Exception) -> None:
    assert str(error)
    assert "\n" not in str(error)


@cases(600)
@given(st.integers(0, len(FORMATS) - 1), DAMAGE)
def test_images(index: int, changes: list[tuple[str, int, bytes]]) -> None:
    try:
        image = load_image(damaged(sound(index), changes), max_pixels=2_000_000)
    except ImageError as error:
        one_line(error)
    else:
        assert image.dtype == torch.uint8
        assert image.shape[0] == 3


@cache
def model() -> SpitModel:
    torch.manual_seed(0)
    return SpitModel(ModelConfig(tokenizer="patch", tokenizer_options={"size": 8}, resolution=2, position_bins=2,
                                 gradients=False, width=8, depth=1, heads=2, num_classes=3)).eval()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(model(), tmp_path_factory.mktemp("model"))


@cases(150)
@given(st.sampled_from(sorted(model().config.to_dict())), VALUES)
def test_configs(saved: Path, tmp_path_factory: pytest.TempPathFactory, key: str, value: Any) -> None:
    document = json.loads((saved / CONFIG).read_text())
    original = (saved / CONFIG).read_text()
    document["model"][key] = value
    try:
        (saved / CONFIG).write_text(json.dumps(document))
        load_model(saved)
    except (WeightsError, ValueError) as error:
        one_line(error)
    finally:
        (saved / CONFIG).write_text(original)


@cases(150)
@given(DAMAGE)
@example([("insert", 0, b"[" * 8)] * 5)
def test_bytes_of_a_config(saved: Path, changes: list[tuple[str, int, bytes]]) -> None:
    original = (saved / CONFIG).read_bytes()
    try:
        (saved / CONFIG).write_bytes(damaged(original, changes))
        load_model(saved)
    except (WeightsError, ValueError) as error:
        one_line(error)
    finally:
        (saved / CONFIG).write_bytes(original)


@cases(150)
@given(DAMAGE, st.sampled_from([".pth", ".safetensors"]))
def test_weight_files(saved: Path, tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, int, bytes]],
                      suffix: str) -> None:
    file = saved.parent / f"weights{suffix}"
    if suffix == ".pth":
        stream = io.BytesIO()
        torch.save({"cls_token": torch.zeros(1, 1, 8)}, stream)
        data = stream.getvalue()
    else:
        data = next(saved.glob("*.safetensors")).read_bytes()
    file.write_bytes(damaged(data, changes))
    with pytest.raises(WeightsError) as caught:  # sound or not, they are no timm ViT state dict
        from_timm(file)
    one_line(caught.value)


@cases(300)
@given(st.text(max_size=60) | st.integers(0, 20_000).map(lambda depth: "x = " + "[" * depth))
def test_recipes(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    try:
        Recipe.read(file)
    except SpitError as error:
        one_line(error)


@cases(300)
@given(st.text(max_size=60) | st.integers(0, 20_000).map(lambda depth: "[" * depth) | VALUES.map(json.dumps))
def test_json(text: str) -> None:
    with suppress(ValueError):
        read_json(text)
