"""``spit evaluate swap``, and --tokenizer of ``spit evaluate classification``."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
PLUGIN = """
from dataclasses import dataclass
import torch
import spit

@dataclass(frozen=True)
class Rows(spit.Tokenizer):
    height: int = 4

    def partition(self, block):
        rows = torch.arange(block.shape[2])[:, None] // self.height
        return spit.Partition.from_labels(rows.expand(len(block), *block.shape[2:]))

spit.register_tokenizer("rows", Rows)
"""


@pytest.fixture
def base(photo: Callable[..., Path], save_tiny: Callable[..., Path], tmp_path: Path) -> tuple[object, ...]:
    """Two classes of three pictures each, and a model."""
    for label in range(2):
        for index in range(3):
            photo(tmp_path / "data" / f"class{label}" / f"{index}.png", seed=3 * label + index)
    return ("--data", tmp_path / "data", "--model", save_tiny(num_classes=2), "--size", 32)


def test_table_files_and_going_on(spit: Run, base: tuple[object, ...], tmp_path: Path,
                                  names: Callable[[Path], list[str]]) -> None:
    pytest.importorskip("matplotlib")
    arguments = ("evaluate", "swap", *base, "-o", tmp_path / "out")
    first = spit(*arguments, "--json")
    assert first.code == 0, first.err
    assert [(row["tokenizer"], row["own"], row["runs"]) for row in first.json["rows"]] == [
        ("patch", False, 1), ("voronoi", False, 5), ("superpixel", True, 1)]
    assert first.json["rows"][2]["change"] is None
    assert first.json["rows"][0]["change"]["images"] == 6
    assert names(tmp_path / "out") == ["images.jsonl", "results.json", "results.md", "results.tex", "swap.pdf",
                                       "swap.png", "swap.svg"]
    assert json.loads((tmp_path / "out/results.json").read_text()) == first.json
    latex = (tmp_path / "out/results.tex").read_text()
    assert r"model & tokenizer & top-1 & change & tokens & images/s \\" in latex
    assert latex.count(r" \\") == 4
    assert r"$\pm$" in latex
    again = spit(*arguments)
    assert "42 of 42 answers are taken from an earlier run" in again.err
    assert "own" in again.out
    assert "swap.png, swap.svg and swap.pdf are in" in " ".join(again.out.split())


def test_equal_counts_do_not_resume_from_others(spit: Run, base: tuple[object, ...], tmp_path: Path) -> None:
    arguments = ("evaluate", "swap", *base, "--tokenizer", "patch,size=8", "--tokenizer", "superpixel,levels=3",
                 "--tokenizer=voronoi,seed=1", "-o", tmp_path / "out", "--json")
    plain, equal = spit(*arguments), spit(*arguments, "--equal-counts")
    assert plain.err == ""
    assert equal.err == "6 of 18 answers are taken from an earlier run\n", "patches"
    assert [row["tokens"] for row in equal.json["rows"]] == [16, 16, 16]
    assert plain.json["rows"][1]["tokens"] != 16
    assert (equal.json["equal_counts"], plain.json.get("equal_counts")) == ("patch,size=8", None)
    records = [json.loads(line) for line in (tmp_path / "out/images.jsonl").read_text().splitlines()]
    assert len(records) == len({(record["case"], record["key"]) for record in records}) == 30
    assert spit(*arguments, "--equal-counts").json["rows"] == equal.json["rows"]


@pytest.mark.usefixtures("restored_parts")
@pytest.mark.parametrize("verb", ["classification", "swap"])
def test_a_registered_tokenizer(verb: str, spit: Run, base: tuple[object, ...], tmp_path: Path,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_rows.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_rows", raising=False)
    given = ("--plugin", "own_rows", "evaluate", verb, *base, "--json")
    rows = spit(*given, "--tokenizer", "rows,height=2", "--tokenizer", "rows", "--tokenizer", "superpixel",
                ).json["rows"]
    assert [(row["tokenizer"], row["tokens"]) for row in rows[:2]] == [("rows,height=2", 16), ("rows", 8)]
    equal = spit(*given, "--tokenizer", "rows", "--tokenizer", "superpixel", "--equal-counts").json["rows"]
    assert [row["tokens"] for row in equal] == [8, 8]
    assert "option of tokenizer 'rows': 'heigth'; did you mean 'height'" in spit(
        *given, "--tokenizer", "rows,heigth=2").error
    assert "expected height to be a whole number, got 'tall'" in spit(*given, "--tokenizer", "rows,height=tall").error
    assert "for --equal-counts, got rows; only the first" in spit(
        *given, "--tokenizer", "superpixel", "--tokenizer", "rows", "--equal-counts").error


@pytest.mark.parametrize("verb", ["classification", "swap"])
def test_bad_tokenizers_are_one_line(verb: str, spit: Run, base: tuple[object, ...],
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    def error(*arguments: str) -> str:
        return spit("evaluate", verb, *base, *arguments).error

    assert "for --equal-counts, got patch; only the first" in error(
        "--tokenizer", "superpixel", "--tokenizer", "patch", "--equal-counts")
    monkeypatch.setattr("spit.cli.evaluate.Models.load", None)  # the others are refused before models are loaded
    assert "did you mean 'patch'" in error("--tokenizer", "pach")
    assert "option of tokenizer 'superpixel': 'level'; did you mean 'levels'" in error("--tokenizer=superpixel,level=3")
    assert "repeat --tokenizer" in error("--tokenizer", "patch,superpixel")
    assert "each --tokenizer once" in error("--tokenizer", "patch", "--tokenizer", "patch")


def test_without_matplotlib_there_is_a_line(spit: Run, base: tuple[object, ...], tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = spit("evaluate", "swap", *base, "--tokenizer", "patch", "-o", tmp_path / "out")
    assert result.code == 0
    assert "no figures: drawing figures needs matplotlib; install the extra: pip install 'spit-vit[" in result.err
    assert not [*(tmp_path / "out").glob("swap.*")]
    assert (tmp_path / "out/results.tex").exists()


def test_help(spit: Run) -> None:
    assert "swap " in spit("evaluate", "--help").out
    assert "--equal-counts" in spit("evaluate", "swap", "--help").out
