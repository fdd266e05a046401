from pathlib import Path

import pytest

from spit.evaluation.lines import Lines, case_of


def test_records_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "images.jsonl"
    with Lines(path) as lines:
        lines.add("a", [{"image": "1", "top": [3]}, {"image": "2", "top": [4]}])
        lines.add("b", [{"image": "1", "top": [5]}])
    with Lines(path) as lines:
        assert {name: record["top"] for name, record in lines.records("a").items()} == {"1": [3], "2": [4]}
        assert lines.records("b")["1"]["top"] == [5]
        assert lines.records("c") == {}


def test_in_memory() -> None:
    with Lines(None) as lines:
        lines.add("a", [{"image": "1"}])
        assert list(lines.records("a")) == ["1"]


@pytest.mark.parametrize("cut", range(1, 22))
def test_a_line_cut_short_is_dropped_wherever(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "images.jsonl"
    with Lines(path) as lines:
        lines.add("a", [{"image": "1"}])
        lines.add("a", [{"image": "2"}])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with Lines(path) as lines:
        assert list(lines.records("a")) == ["1"]
        lines.add("a", [{"image": "2"}])
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["no json", "[]", '{"image": "1"}'])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, line: str) -> None:
    path = tmp_path / "images.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ValueError, match="line 1; choose another"):
        Lines(path)
    assert path.read_text() == line + "\n"


def test_a_case_is_all_that_matters() -> None:
    assert case_of(size=1, model="a") == case_of(model="a", size=1) != case_of(size=2, model="a")
