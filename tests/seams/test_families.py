"""benchmarks/backbones.py, which measures the tables of docs/backbones.md, and the page's snippets with timm."""

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

import spit
from seams.plain import PlainSeam, PlainViT, WrongSeam
from spit.seams.seam import SEAMS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "backbones.md").read_text()


@pytest.fixture
def backbones(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module backbones of benchmarks/."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return import_module("backbones")


@pytest.fixture
def plain() -> Iterator[type[nn.Module]]:
    with patch.dict(SEAMS):
        spit.register_seam(PlainViT, PlainSeam)
        yield PlainViT


def record(backbones: Any, module: nn.Module) -> dict[str, Any]:
    backbones.roughen(module, torch.Generator().manual_seed(0))
    seam = backbones.find_seam(module)
    return {"name": "timm:deit_tiny", **backbones.describe(seam), **backbones.compare(seam)}


def test_a_backbone_is_measured(backbones: Any, plain: Callable[..., nn.Module]) -> None:
    found = record(backbones, plain(prefix=1).eval())
    assert max(*found["squares"], found["shuffled"], found["ragged"]) < backbones.BAR
    assert found["moved"] > 0.01
    assert found["attention"]
    assert len(set(found["counts"])) == 2
    assert (found["positions"], found["head"]) == ("table", "class token")
    assert record(backbones, plain(prefix=0).eval())["head"] == "mean"


def test_a_wrong_seam_is_named(backbones: Any, plain: Callable[..., nn.Module]) -> None:
    spit.register_seam(PlainViT, WrongSeam)
    with pytest.raises(spit.WeightsError):
        record(backbones, plain().eval())


def test_tables(backbones: Any, plain: Callable[..., nn.Module], tmp_path: Path) -> None:
    good = record(backbones, plain().eval())
    other = {**good, "name": "timm:deit_small", "squares": [1e-6, 1e-7], "attention": False, "prefix": "none"}
    far = {**good, "name": "timm:vit_tiny", "ragged": 1e-3}
    text = backbones.tables([good, other, far, {"name": "hf:Swin", "error": "TypeError: a | b"}], backbones.BAR)
    assert "### timm: 2 of 3" in text
    assert "### transformers: 0 of 1" in text
    [row] = [line for line in text.splitlines() if line.startswith("| DeiT |")]
    assert row.startswith("| DeiT | 2 | 8 | 1; none | table | class token | 1e-06 |")
    assert row.endswith("| some |")
    assert "ragged 1.0e-03" in text
    assert "| `hf:Swin` | TypeError: a / b |" in text
    page = tmp_path / "page.md"
    page.write_text(f"a\n{backbones.MARKS[0]}\nold\n{backbones.MARKS[1]}\nb\n")
    backbones.write(page, text)
    backbones.write(page, text)
    assert page.read_text() == f"a\n{backbones.MARKS[0]}\n\n{text}\n{backbones.MARKS[1]}\nb\n"
    page.write_text("no marks")
    with pytest.raises(spit.SpitError, match="expected the lines"):
        backbones.write(page, text)


def test_the_page_has_the_marks(backbones: Any) -> None:
    assert PAGE.count(backbones.MARKS[0]) == PAGE.count(backbones.MARKS[1]) == 1


def test_the_snippets_of_the_page(timm: Any, monkeypatch: pytest.MonkeyPatch, photos: Callable[..., list[Tensor]],
                                  randomised: Callable[[nn.Module], nn.Module]) -> None:
    """Without the weights, and with fewer blocks."""
    create = timm.create_model
    monkeypatch.setattr(timm, "create_model", lambda name, pretrained: create(name, depth=2))
    names: dict[str, Any] = {"images": photos((70, 56), (42, 84))}
    with patch.dict(SEAMS):
        for block in re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL):
            exec(compile(block, "backbones.md", "exec"), names)
        assert names["tokens"].values.shape[1] == 384
        with torch.no_grad():
            assert names["model"](photos((64, 80))).shape == (1, 1000)
        shared = create("vit_srelpos_small_patch16_224", depth=2)
        with pytest.raises(spit.WeightsError, match="on square patches within"):
            spit.wrap(randomised(shared))
