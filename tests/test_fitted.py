"""Files of tensors that belong to a model's weights: what token heads and prototypes share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import spit
from spit import fitted
from spit.attribution import Prototypes, load_prototypes
from spit.errors import WeightsError
from spit.segmentation import TokenHead, load_head

Kind = tuple[type[fitted.Fitted], Callable[..., Any], Callable[[float], fitted.Fitted]]

HEAD: Kind = (TokenHead, load_head,
              lambda value: TokenHead(torch.full((2, 8), value), torch.tensor(value), (0, 2), {"weights": "w"}))
PROTOTYPES: Kind = (Prototypes, load_prototypes,
                    lambda value: Prototypes(torch.full((3, 2, 8), value), torch.tensor([1, 0, 2]), {"weights": "w"}))
kinds = pytest.mark.parametrize(("kind", "load", "made"), [HEAD, PROTOTYPES], ids=["head", "prototypes"])


def written(path: Path, kind: type[fitted.Fitted], made: Callable[[float], fitted.Fitted], header: Any) -> Path:
    """A file with the right tensors and any header."""
    tensors, _ = made(1.0).parts()
    safetensors.torch.save_file(tensors, path, {kind.key: header if isinstance(header, str) else json.dumps(header)})
    return path


@kinds
@pytest.mark.parametrize(("header", "message"), [
    ([1], "expected its header as an object, got list"),
    ("3", "expected its header as an object, got int"),
    ("null", "expected its header as an object, got NoneType"),
    ({}, "the key 'format' is missing"),
    ({"format": 2, "layers": [0, 2]}, "format 2, this version of spit reads 1"),
    ("{", "Expecting property name"),
    ("[" * 9999, "more than can be read"),
])
def test_a_header_that_spit_did_not_write(kind: type[fitted.Fitted], load: Callable[..., Any],
                                          made: Callable[[float], fitted.Fitted], header: Any, message: str,
                                          tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=message) as caught:
        load(written(tmp_path / "a.safetensors", kind, made, header))
    assert f"a.safetensors: expected {kind.what} that spit wrote, got something else or a damaged" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("layers", [5, [], [0], [0, -1], [0, "2"], [0, 1.5], None, {"a": 1, "b": 2}])
def test_layers_that_spit_did_not_write(layers: Any, tmp_path: Path) -> None:
    kind, load, made = HEAD
    with pytest.raises(WeightsError, match=r"expected a head for saliency that spit wrote, .*(layers|iterable)"):
        load(written(tmp_path / "a.safetensors", kind, made, {"format": 1, "layers": layers}))


@kinds
def test_tensors_that_are_missing(kind: type[fitted.Fitted], load: Callable[..., Any],
                                  made: Callable[[float], fitted.Fitted], tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    name = next(iter(made(1.0).parts()[0]))
    safetensors.torch.save_file({"x": torch.zeros(1)}, path, {kind.key: json.dumps({"format": 1, "layers": [0, 2]})})
    with pytest.raises(WeightsError, match=f"the key '{name}' is missing"):
        load(path)
    safetensors.torch.save_file({"x": torch.zeros(1)}, path)
    with pytest.raises(WeightsError, match=f"the key '{kind.key}' is missing"):
        load(path)


@kinds
def test_a_file_is_read_once_until_it_changes(kind: type[fitted.Fitted], load: Callable[..., Any],
                                              made: Callable[[float], fitted.Fitted], tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real = fitted.safe_open
    monkeypatch.setattr(fitted, "safe_open", lambda path, **options: opened.append(path) or real(path, **options))
    path = made(1.0).save(tmp_path / "a.safetensors")
    first = load(path)
    monkeypatch.chdir(tmp_path)
    assert load("a.safetensors") is load(str(path)) is first
    assert len(opened) == 1
    path.write_bytes(made(2.0).save(tmp_path / "b.safetensors").read_bytes())  # in place, of the same size
    assert load(path).digest == made(2.0).digest
    assert first.digest == made(1.0).digest
    assert len(opened) == 2


@kinds
def test_models_of_another_shape(kind: type[fitted.Fitted], load: Callable[..., Any],
                                 made: Callable[[float], fitted.Fitted]) -> None:
    model = spit.create_model("vit_tiny_16", width=8, depth=3, heads=1, num_classes=3)
    made(1.0).check(model)
    wide = spit.create_model("vit_tiny_16", width=16, depth=3, heads=1, num_classes=3)
    with pytest.raises(WeightsError, match=f"^expected {kind.what} for .*16.*, as the model has, got .*8.*; "):
        made(1.0).check(wide)


@kinds
def test_the_name_of_a_model_without_one(kind: type[fitted.Fitted], load: Callable[..., Any],
                                         made: Callable[[float], fitted.Fitted]) -> None:
    with pytest.raises(WeightsError, match=f"expected a model that comes with {kind.what}, got vit_base_16; "):
        load("vit_base_16")
