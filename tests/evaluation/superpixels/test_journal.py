import json
from pathlib import Path

import pytest

from spit.evaluation.superpixels.journal import Journal

RUN = {"images": 2, "spit": "1"}
KEY = ("slic", 600)


def record(image: str, parameter: float = 1, regions: int = 5) -> dict[str, object]:
    return {"image": image, "parameter": parameter, "regions": regions}


def test_in_memory() -> None:
    with Journal(None, RUN) as book:
        assert book.base(KEY) is None
        assert book.records(KEY) == {}
        book.add(KEY, record("a"))
        book.add(KEY, record("a", parameter=2))
        assert book.base(KEY) == 1
        assert book.records(KEY) == {"a": record("a", parameter=2)}


def test_taken_up_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "images.jsonl"
    with Journal(path, RUN) as book:
        book.add(KEY, record("ä\u2028"))
        book.add(("lsc", 600), record("b"))
        book.add(KEY, record("ä\u2028", parameter=3))
    lines = path.read_bytes()
    with Journal(path, RUN) as book:
        assert book.base(KEY) == 1
        assert book.records(KEY) == {"ä\u2028": record("ä\u2028", parameter=3)}
        assert list(book.records(("lsc", 600))) == ["b"]
    assert path.read_bytes() == lines


def test_a_line_cut_short_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "images.jsonl"
    with Journal(path, RUN) as book:
        book.add(KEY, record("a"))
        book.add(KEY, record("b"))
    path.write_bytes(path.read_bytes()[:-4])
    with Journal(path, RUN) as book:
        assert list(book.records(KEY)) == ["a"]
        book.add(KEY, record("c"))
    assert [json.loads(line).get("image") for line in path.read_text().splitlines()] == [None, "a", "c"]


def test_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "images.jsonl"
    Journal(path, RUN).__exit__(None, None, None)
    with pytest.raises(ValueError, match=r"another run \(images: 2, now 3\); choose another --output"):
        Journal(path, {**RUN, "images": 3})
    path.write_text("no JSON\n")
    with pytest.raises(ValueError, match="expected lines of JSON"):
        Journal(path, RUN)
