"""Exported files answer as torch does, at any token count, and nothing wrong is written."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import spit
from spit.errors import SpitError
from spit.export import Exporting, TokenGraph, export, files
from spit.export.check import COUNTS
from spit.runtime.pipeline import KEY

ONNX = ("onnx", "onnxscript", "onnxruntime")


def small(name: str = "spit_tiny_16", **options: Any) -> spit.SpitModel:
    """Untrained, but with residual branches that count."""
    torch.manual_seed(0)
    return spit.create_model(name, num_classes=7, depth=2, layer_scale=None, **options)


def session(path: Path) -> Any:
    for package in ONNX:
        pytest.importorskip(package)
    import onnxruntime

    return onnxruntime.InferenceSession(path)


def test_the_graph_of_tokens_is_the_model() -> None:
    model = small()
    image = torch.rand(1, 3, 40, 56, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        features = model.tokenize(image)[1]
        for got, expected in zip(TokenGraph(model).eval()(features.values),
                                 (one if isinstance(one, torch.Tensor) else one.values for one in model.run(features)),
                                 strict=True):
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_onnx_from_token_features(precision: str, tmp_path: Path) -> None:
    for package in ONNX:
        pytest.importorskip(package)
    model = small()
    written = export(model, tmp_path / "model.onnx", Exporting(precision=precision))
    assert tuple(written.differences) == COUNTS
    assert written.difference < {"float32": 1e-5, "float16": 5e-3, "int8": 0.1}[precision]
    assert written.size == written.path.stat().st_size
    ran = session(written.path)
    assert [(one.name, one.shape[1]) for one in ran.get_inputs()] == [("features", 1280)]
    assert [one.name for one in ran.get_outputs()] == ["logits", "class_token", "tokens"]
    described = json.loads(ran.get_modelmeta().custom_metadata_map[KEY])
    assert described["tokenizer_options"]["levels"] == 4
    assert described["precision"] == precision
    assert str(Path(spit.__file__).parent).encode() not in written.path.read_bytes()


@pytest.mark.parametrize("name", ["spit_tiny_16", "vit_tiny_16"])
def test_a_file_for_classes_alone(name: str, tmp_path: Path) -> None:
    for package in ONNX:
        pytest.importorskip(package)
    pixels = torch.randint(256, (64, 64, 3), generator=torch.Generator().manual_seed(4), dtype=torch.uint8).numpy()
    whole, classes = (spit.runtime.load(export(small(name, gradients=False), tmp_path / f"{outputs}.onnx",
                                               Exporting(outputs=outputs)).path, threads=1)(pixels)
                      for outputs in ("all", "classes"))
    assert classes.tokens is None
    for got, expected in ((classes.logits, whole.logits), (classes.class_token, whole.class_token)):
        torch.testing.assert_close(torch.from_numpy(got), torch.from_numpy(expected), atol=1e-5, rtol=1e-5)
    assert repr(classes) == repr(whole)


def test_torch_program(tmp_path: Path) -> None:
    model = small()
    written = export(model, tmp_path / "model.pt2", Exporting(format="torch"))
    assert written.difference < 1e-5
    extra = {KEY: ""}
    program = torch.export.load(tmp_path / "model.pt2", extra_files=extra).module()
    assert json.loads(extra[KEY])["tokenizer"] == "superpixel"
    for count in (1, 2, 4096):
        assert program(torch.rand(count, 1280))[2].shape == (count, 192)


def test_a_graph_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small()
    monkeypatch.setitem(files.TOLERANCES, "float32", 0.0)
    with pytest.raises(SpitError, match="nothing was written"):
        export(model, tmp_path / "model.pt2", Exporting(format="torch"))
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="format onnx has it"):
        Exporting(format="torch", precision="int8")
    with pytest.raises(TypeError, match="expected a model of spit"):
        export(torch.nn.Identity(), tmp_path / "a.onnx")  # type: ignore[arg-type]
    model, torch_file = small(), Exporting(format="torch")
    with pytest.raises(ValueError, match="evaluation mode"):
        export(small(training=True), tmp_path / "a.pt2", torch_file)
    with pytest.raises(SpitError, match="a folder that exists"):
        export(model, tmp_path / "nowhere" / "a.pt2", torch_file)
