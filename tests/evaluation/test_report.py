import json
from dataclasses import dataclass, replace

import pytest

from spit.devices import machine
from spit.documents import Sheet, as_text
from spit.evaluation.report import Report


@dataclass(frozen=True)
class Row:
    top1: float


REPORT = Report("Title", "Notes.", [Sheet(["model", "top-1"], [["a|b", "0.5"]], marked=[0])], "data", 3, {"size": 224},
                {"device": "cpu"}, [Row(0.5)])


def test_markdown() -> None:
    lines = REPORT.markdown().splitlines()
    assert lines[0] == "# Title"
    assert lines[2] == f"3 images of data; size 224; {machine('cpu')}."
    assert lines[4:7] == ["| model | top-1 |", "|---|---:|", "| **a&#124;b** | 0.5 |"]
    assert lines[-1] == "Notes."


@pytest.mark.parametrize(("value", "text"), [
    (None, "none"), (True, "yes"), (False, "no"), ((0.1, 0.2), "0.1, 0.2"), (["a", "b"], "a, b"), (1, "1"),
])
def test_settings_are_in_plain_words(value: object, text: str) -> None:
    assert as_text(value) == text
    assert replace(REPORT, settings={"size": value}).head.startswith(f"3 images of data; size {text}; ")


def test_a_title_for_each_of_several_tables() -> None:
    assert Sheet(["a"], [["1"]], title="About 20 regions").markdown().startswith("## About 20 regions\n\n| a |")


def test_latex() -> None:
    lines = REPORT.latex().splitlines()
    assert lines[:4] == ["% Title", f"% {REPORT.head}", "% Notes.", r"% needs \usepackage{booktabs}"]
    assert lines[5:] == [r"\begin{tabular}{lr}", r"\toprule", r"model & top-1 \\", r"\midrule",
                         r"\textbf{a$|$b} & 0.5 \\", r"\bottomrule", r"\end{tabular}"]


def test_files() -> None:
    files = replace(REPORT, pictures={"swap.svg": b"<svg/>"}).files()
    assert list(files) == ["results.json", "results.md", "results.tex", "swap.svg"]
    assert json.loads(files["results.json"]) == REPORT.document()
    assert files["results.tex"].decode() == REPORT.latex()


def test_json() -> None:
    document = json.loads(json.dumps(REPORT.document()))
    assert (document["size"], document["device"], document["images"]) == (224, "cpu", 3)
    assert document["rows"] == [{"top1": 0.5}]
