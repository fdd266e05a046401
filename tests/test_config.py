import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spit.config import ModelConfig


@given(st.builds(
    ModelConfig,
    tokenizer_options=st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.booleans(), max_size=3),
    channels=st.integers(1, 9), position_sigma=st.floats(0, 1), gradients=st.booleans(),
    layer_scale=st.none() | st.floats(1e-6, 1), token_budget=st.none() | st.integers(1, 999),
    drop_path=st.floats(0, 0.9), num_classes=st.integers(0, 9),
    image_size=st.none() | st.integers(1, 999),
))
def test_json_round_trip(config):
    assert ModelConfig.from_json(config.to_json()) == config


@given(st.lists(st.text(max_size=5), min_size=1, max_size=4))
def test_class_names_travel_until_the_classes_change(names):
    config = ModelConfig(num_classes=len(names), class_names=tuple(names))
    assert ModelConfig.from_json(config.to_json()) == config
    assert config.replace(depth=2, num_classes=len(names)).class_names == tuple(names)
    assert config.replace(num_classes=len(names) + 1).class_names == ()


def test_what_is_not_known_is_not_written():
    assert not {"class_names", "image_size"} & ModelConfig().to_dict().keys()


def test_unknown_key_names_the_nearest():
    with pytest.raises(ValueError, match="'widht'; the nearest known one is 'width'"):
        ModelConfig.from_dict({"widht": 3})
    with pytest.raises(ValueError, match="'drop_path'"):
        ModelConfig().replace(drop_paht=0.1)


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"width": "192"}, TypeError, "expected width of type int, got '192'"),
    ({"depth": True}, TypeError, "expected depth of type int, got True"),
    ({"gradients": 1}, TypeError, "expected gradients of type bool"),
    ({"tokenizer_options": []}, TypeError, "tokenizer_options"),
    ({"depth": 0}, ValueError, "at least 1, got 0"),
    ({"width": 100}, ValueError, "width=100 and heads=3"),
    ({"drop_path": 1.0}, ValueError, "below 1, got 1.0"),
    ({"position_sigma": float("nan")}, ValueError, "position_sigma"),
    ({"token_budget": 0}, ValueError, "token_budget"),
    ({"image_size": 0}, ValueError, "image_size"),
    ({"class_names": ["cat"]}, TypeError, "expected class_names of type tuple"),
    ({"class_names": (1,), "num_classes": 1}, TypeError, r"expected class_names of type str, got \(1,\)"),
    ({"class_names": ("cat", "dog"), "num_classes": 3}, ValueError, "expected class_names for 3 classes, got 2"),
])
def test_wrong_values_are_named(change, error, message):
    with pytest.raises(error, match=message):
        ModelConfig(**change)


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelConfig().width = 3
