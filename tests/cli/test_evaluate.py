"""What the verbs of ``spit evaluate`` share."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spit.evaluation.runner import Journal

Run = Callable[..., Any]


@pytest.fixture
def base(photo: Callable[..., Path], save_tiny: Callable[..., Path], tmp_path: Path) -> tuple[object, ...]:
    """Faithfulness of a random map on two photos."""
    for index in range(2):
        photo(tmp_path / "data" / f"{index}.png", seed=index)
    return ("evaluate", "faithfulness", "--data", tmp_path / "data", "--model", save_tiny(num_classes=2), "--size", 32,
            "--method", "random", "-o", tmp_path / "out")


def test_two_runs_do_not_share_a_folder(spit: Run, base: tuple[object, ...], tmp_path: Path,
                                        names: Callable[[Path], list[str]]) -> None:
    with Journal(tmp_path / "out/images.jsonl"):
        assert "another evaluation is writing there" in spit(*base).error
    assert spit(*base).code == 0
    assert not [name for name in names(tmp_path / "out") if name.startswith(".")]


def test_a_missing_extra_is_named(spit: Run, base: tuple[object, ...], tmp_path: Path,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = spit(*base)
    assert result.code == 0
    assert "'spit-vit[plots]'" in result.err
    assert not (tmp_path / "out/curves.png").exists()
    assert (tmp_path / "out/results.md").exists()
