"""The snippets of docs/export.md run as they are written."""

import re
from pathlib import Path

import pytest
from PIL import Image
from skimage import data

PAGE = Path(__file__).parents[2] / "docs" / "export.md"


def test_the_runtime_s_snippet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)
    from spit.cli import main

    monkeypatch.chdir(tmp_path)
    command = re.search(r"^spit (export spit_tiny_16 --output .*)$", PAGE.read_text(), re.MULTILINE)
    assert command is not None
    assert main(command[1].split()) == 0
    Image.fromarray(data.chelsea()).save("cat.jpg")
    Image.fromarray(data.coffee()).save("dog.jpg")
    names: dict[str, object] = {}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[:2]:
        exec(snippet, names)
    answer = names["answer"]
    assert answer.top(1)[0].name == "Egyptian cat"
    assert answer.tokens[answer.labels].shape == (288, 288, 192)
    assert answer.class_token.shape == (192,)
