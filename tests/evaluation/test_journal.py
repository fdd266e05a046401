from pathlib import Path

import pytest

from spit.evaluation.journal import Journal, case_of


def test_records_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "images.jsonl"
    with Journal(path) as journal:
        journal.add("a", [{"key": "1", "image": "a", "top": [3]}, {"key": "2", "image": "b", "top": [4]}])
        journal.add("b", [{"key": "1", "image": "a", "top": [5]}])
    with Journal(path) as journal:
        assert {key: record["top"] for key, record in journal.records("a").items()} == {"1": [3], "2": [4]}
        assert journal.records("b")["1"]["top"] == [5]
        assert journal.records("c") == {}


def test_in_memory() -> None:
    with Journal(None) as journal:
        journal.add("a", [{"key": "1", "image": "a"}])
        assert list(journal.records("a")) == ["1"]


@pytest.mark.parametrize("cut", range(1, 22))
def test_a_line_cut_short_is_dropped_wherever(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "images.jsonl"
    with Journal(path) as journal:
        journal.add("a", [{"key": "1", "image": "a"}])
        journal.add("a", [{"key": "2", "image": "b"}])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    with Journal(path) as journal:
        assert list(journal.records("a")) == ["1"]
        journal.add("a", [{"key": "2", "image": "b"}])
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", ["no json", "[]", '{"image": "1"}'])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, line: str) -> None:
    path = tmp_path / "images.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ValueError, match="line 1; choose another"):
        Journal(path)
    assert path.read_text() == line + "\n"


def test_a_case_is_all_that_matters() -> None:
    assert case_of(size=1, model="a") == case_of(model="a", size=1) != case_of(size=2, model="a")


def test_answers_of_an_earlier_run_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "images.jsonl"
    with Journal(path) as journal:
        journal.add("a", [{"key": "1", "image": "a"}])
        assert journal.earlier == {}
    with Journal(path) as journal:
        journal.add("a", [{"key": "2", "image": "b"}])
        assert journal.earlier == {"a": frozenset({"1"})}


def test_lines_without_a_content_key_are_not_used(tmp_path: Path) -> None:
    """Older versions knew images by their names."""
    path = tmp_path / "images.jsonl"
    path.write_text('{"case": "a", "image": "cat.jpg", "top": [3]}\n')
    with Journal(path) as journal:
        assert journal.records("a") == {}
        journal.add("a", [{"key": "1", "image": "cat.jpg", "top": [4]}])
    assert len(path.read_text().splitlines()) == 2
