import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spit.config import ModelConfig


def round_trip(config):
    return ModelConfig.from_dict(json.loads(json.dumps(config.to_dict())))


@given(st.builds(
    ModelConfig,
    tokenizer_options=st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.booleans(), max_size=3),
    channels=st.integers(1, 9), position_sigma=st.floats(0, 1), gradients=st.booleans(),
    layer_scale=st.none() | st.floats(1e-6, 1), token_budget=st.none() | st.integers(1, 999),
    drop_path=st.floats(0, 0.9), num_classes=st.integers(0, 9),
    train_size=st.none() | st.integers(1, 999), eval_size=st.none() | st.integers(1, 999),
    eval_crop=st.none() | st.floats(0.1, 1), drop_path_uniform=st.booleans(),
))
def test_json_round_trip(config):
    assert round_trip(config) == config


@given(st.lists(st.text(max_size=5), min_size=1, max_size=4))
def test_class_names_travel_until_the_classes_change(names):
    config = ModelConfig(num_classes=len(names), class_names=tuple(names))
    assert round_trip(config) == config
    assert config.replace(depth=2, num_classes=len(names)).class_names == tuple(names)
    assert config.replace(num_classes=len(names) + 1).class_names == ()


def test_what_is_not_known_is_not_written():
    unknown = {"class_names", "train_size", "eval_size", "extractor_options", "backbone_options"}
    assert not unknown & ModelConfig().to_dict().keys()


def test_unknown_key_names_the_nearest():
    with pytest.raises(ValueError, match="'widht'; did you mean 'width'"):
        ModelConfig.from_dict({"widht": 3})
    with pytest.raises(ValueError, match="'drop_path'"):
        ModelConfig().replace(drop_paht=0.1)


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"width": "192"}, TypeError, "expected width to be a whole number, got '192'"),
    ({"depth": True}, TypeError, "expected depth to be a whole number, got True"),
    ({"gradients": 1}, TypeError, "expected gradients to be bool"),
    ({"tokenizer_options": []}, TypeError, "tokenizer_options"),
    ({"depth": 0}, ValueError, "at least 1, got 0"),
    ({"width": 100}, ValueError, "width=100 and heads=3"),
    ({"drop_path": 1.0}, ValueError, "below 1, got 1.0"),
    ({"position_sigma": float("nan")}, ValueError, "position_sigma"),
    ({"token_budget": 0}, ValueError, "token_budget"),
    ({"train_size": 0}, ValueError, "train_size"),
    ({"eval_size": 0}, ValueError, "eval_size"),
    ({"eval_crop": 0.0}, ValueError, "expected eval_crop above 0, got 0.0"),
    ({"normalization": "none of these"}, ValueError, "expected normalization to be one of contrast, imagenet, none"),
    ({"class_names": ["cat"]}, TypeError, "expected class_names to be tuple of str"),
    ({"class_names": (1,), "num_classes": 1}, TypeError, r"expected class_names to be tuple of str, got \(1,\)"),
    ({"class_names": ("cat", "dog"), "num_classes": 3}, ValueError, "expected class_names for 3 classes, got 2"),
])
def test_wrong_values_are_named(change, error, message):
    with pytest.raises(error, match=message):
        ModelConfig(**change)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelConfig().width = 3


@pytest.mark.parametrize(("values", "sizes"), [
    ({"image_size": 256}, (256, 256)), ({"image_size": None}, (None, None)),
    ({"image_size": 256, "eval_size": 288}, (256, 288)), ({"train_size": 224}, (224, None)),
])
def test_a_config_from_before_the_size_became_two(values, sizes):
    config = ModelConfig.from_dict(values)
    assert (config.train_size, config.eval_size) == sizes
    assert "image_size" not in config.to_dict()


def test_options_of_the_same_tokenizer_are_merged() -> None:
    config = ModelConfig(tokenizer_options={"levels": 3, "compactness": 0.8})
    assert config.replace(tokenizer_options={"levels": 2}).tokenizer_options == {"levels": 2, "compactness": 0.8}
    assert config.replace(tokenizer="patch").tokenizer_options == {}
    assert config.replace(width=96).tokenizer_options == config.tokenizer_options


@pytest.mark.parametrize("given", [[1], "levels", 3])
def test_options_of_a_tokenizer_that_are_no_table(given) -> None:
    config = ModelConfig()
    for ask in (lambda: config.replace(tokenizer_options=given), lambda: config.options_for("superpixel", given),
                lambda: config.replace(tokenizer="patch", tokenizer_options=given)):
        with pytest.raises(TypeError, match=r"expected tokenizer_options as a table, such as \{'levels': 4\}, got "):
            ask()


def test_the_help_names_every_backbone_of_spit() -> None:
    assert all(name in ModelConfig.__doc__.split("backbone: ")[1].split("\n")[0] for name in ("transformer", "merging"))
