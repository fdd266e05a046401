from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Run = Callable[..., Any]


def test_a_program_of_torch(spit: Run, save_tiny: Callable[..., Path], tmp_path: Path) -> None:
    result = spit("export", save_tiny(num_classes=3), "--format", "torch", "-o", tmp_path / "tiny.pt2")
    assert result.code == 0
    assert "torch, float32, from tokens" in result.out
    assert "at 10 token counts from 1 to 4096" in result.out
    program = torch.export.load(tmp_path / "tiny.pt2").module()
    assert program(torch.rand(5, 64))[0].shape == (1, 3)


def test_json(spit: Run, save_tiny: Callable[..., Path], tmp_path: Path) -> None:
    model = save_tiny(num_classes=3, tokenizer="patch", tokenizer_options={"size": 4})
    document = spit("export", model, "--format", "torch", "-o", tmp_path / "tiny.pt2", "--json").json
    assert (document["input"], document["precision"]) == ("pixels", "float32")
    assert len(document["differences"]) == 10
    assert document["bytes"] == (tmp_path / "tiny.pt2").stat().st_size


def test_what_is_wrong_is_one_line(spit: Run, save_tiny: Callable[..., Path], tmp_path: Path) -> None:
    target = tmp_path / "tiny.pt2"
    assert "format onnx has it" in spit("export", "spit_tiny_16", "--format", "torch", "--precision", "int8", "-o",
                                        target).error
    assert "square patches" in spit("export", save_tiny(), "--format", "torch", "--input", "pixels", "-o", target).error
    assert "a folder that exists" in spit("export", save_tiny(), "--format", "torch", "-o",
                                          tmp_path / "nowhere" / "a.pt2").error
    assert not target.exists()
