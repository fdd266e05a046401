from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import spit as library
from spit.runtime import load

Run = Callable[..., Any]


def test_a_program_of_torch(spit: Run, save_tiny: Callable[..., Path], tmp_path: Path) -> None:
    result = spit("export", save_tiny(num_classes=3), "--format", "torch", "-o", tmp_path / "tiny.pt2")
    assert result.code == 0
    assert result.err.splitlines() == ["spit: Tracing the graph", "spit: Converting it to torch, float32",
                                       "spit: Comparing logits with torch's"]
    assert "torch, float32" in result.out
    assert "at 10 token counts from 1 to 4096" in result.out
    program = torch.export.load(tmp_path / "tiny.pt2").module()
    assert program(torch.rand(5, 64))[0].shape == (1, 3)


def test_json(spit: Run, save_tiny: Callable[..., Path], tmp_path: Path) -> None:
    model = save_tiny(num_classes=3, tokenizer="patch", tokenizer_options={"size": 4})
    document = spit("export", model, "--format", "torch", "-o", tmp_path / "tiny.pt2", "--json").json
    assert document["precision"] == "float32"
    assert len(document["differences"]) == 10
    assert document["bytes"] == (tmp_path / "tiny.pt2").stat().st_size


def test_what_is_wrong_is_one_line(spit: Run, save_tiny: Callable[..., Path], tmp_path: Path) -> None:
    target = tmp_path / "tiny.pt2"
    assert "format onnx has it" in spit("export", "spit_tiny_16", "--format", "torch", "--precision", "int8", "-o",
                                        target).error
    assert "a folder that exists" in spit("export", save_tiny(), "--format", "torch", "-o",
                                          tmp_path / "nowhere" / "a.pt2").error
    for name in ("x.foo", "x", "x.pt2"):
        assert f"expected --output to end in .onnx for --format onnx, got {name}; rename it" in spit(
            "export", save_tiny(), "-o", tmp_path / name).error
    assert "to end in .pt2 or .pt or .pth for --format torch, got x.onnx" in spit(
        "export", save_tiny(), "--format", "torch", "-o", tmp_path / "x.onnx").error
    (tmp_path / "file").write_text("")
    assert f"got the file {tmp_path / 'file'}" in spit(
        "export", "no_such_model", "-o", tmp_path / "file/a.onnx").error
    to_torch = ("--format", "torch", "-o", target)
    assert "MODEL" in spit("export", *to_torch).error
    assert not target.exists()


def test_a_tokenizer_of_your_own_is_told(spit: Run, save_tiny: Callable[..., Path], tmp_path: Path,
                                         restored_parts: None) -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package)

    @dataclass(frozen=True)
    class Stripes(library.Tokenizer):
        width: int = 16

        def partition(self, block: torch.Tensor) -> library.Partition:
            images, _, height, width = block.shape
            return library.Partition.from_labels((torch.arange(width) // self.width).expand(images, height, width))

    library.register_tokenizer("stripes", Stripes)
    file = tmp_path / "tiny.onnx"
    result = spit("export", save_tiny(num_classes=3, tokenizer="stripes"), "-o", file)
    assert result.code == 0
    assert result.err.count("spit.runtime cannot") == 1
    assert f"spit.runtime cannot run {file} on images: expected tokenizer to be one of" in result.err
    assert "got 'stripes'; spit.runtime has no tokenizers of your own: use spit.load, with torch, or" in result.err
    with pytest.raises(library.WeightsError, match=f"^{file}: .*got 'stripes'"):
        load(file)
    assert "cannot run" not in spit("export", save_tiny(num_classes=3), "-o", file).err
