"""docs/reproduce.md has a row for every table and figure of the paper; links, there and in paper-to-code.md, exist."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TABLES = ("1", "2", "3", "4", "5", "B1", "B2", "C1", "E1", "G1")
FIGURES = ("1", "2", "3", "4", "5", "6", "B1", "D1", "D2", "D3", "D4", "D5", "F1", "F2")


def rows(heading: str) -> set[str]:
    """The first cells below a heading, up to a comma."""
    [section] = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", (DOCS / "reproduce.md").read_text(), re.M | re.S)
    return {cell.partition(",")[0] for cell in re.findall(r"^\| ([^|]*?) \|", section, re.M)} - {heading.lower()[:-1]}


def test_every_table_and_figure_has_a_row() -> None:
    assert rows("Tables") == set(TABLES)
    assert rows("Figures") == set(FIGURES)


@pytest.mark.shared
def test_the_paper_has_no_others(shared_folder: Callable[[str], Path]) -> None:
    [paper] = shared_folder("paper").glob("*.txt")
    assert paper.read_text().count(r"\caption{") == len(TABLES) + len(FIGURES)


@pytest.mark.parametrize("page", ["reproduce", "paper-to-code"])
def test_tables_are_whole_and_links_lead_somewhere(page: str) -> None:
    """Every row of a table has as many cells as its head, and a table follows its head without a gap."""
    text = (DOCS / f"{page}.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (DOCS / target).exists(), target
    for block in re.split(r"\n\s*\n", text):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        if lines:
            assert re.fullmatch(r"\|(?:-+:?\|)+", lines[1]), block[:80]
            assert {line.count("|") for line in lines} == {lines[0].count("|")}, block[:80]


def test_every_file_of_the_map_exists() -> None:
    """Paths in the tables of paper-to-code.md, below src/spit, kernels/reference or the project."""
    text = (DOCS / "paper-to-code.md").read_text().partition("## Where we deviate")[0]
    source = DOCS.parent / "src" / "spit"
    for name in re.findall(r"`((?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.py)?|[a-z_0-9]+\.py)", text):
        below = name.removeprefix("reference/")
        places = (source / name, source / "kernels/reference" / below, source / "tokenizers" / name, DOCS.parent / name)
        assert any(place.exists() for place in places), name
