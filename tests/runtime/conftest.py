from pathlib import Path

import pytest

import spit


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """spit_tiny_16 with its weights, as ONNX in float32."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    from spit.export import export

    return export(spit.load_model("spit_tiny_16"), tmp_path_factory.mktemp("onnx") / "spit_tiny_16.onnx").path
