"""docs/reproduce.md has a row for every table and figure of the paper; links, there and in paper-to-code.md, exist."""

import ast
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


def named(tree: ast.Module) -> set[str]:
    """The functions and classes of a file, and the methods as Class.method."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = {node.name for node in tree.body if isinstance(node, kinds)}
    return found | {f"{node.name}.{below.name}" for node in tree.body if isinstance(node, ast.ClassDef)
                    for below in node.body if isinstance(below, kinds)}


def test_every_file_and_function_of_the_map_exists() -> None:
    """`path.py`, `path.py`: `name`, `name` in the tables of paper-to-code.md, below src/spit or the project."""
    text = (DOCS / "paper-to-code.md").read_text().partition("## Where we deviate")[0]
    maps = re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`((?:[:,] `[A-Za-z_.]+`)*)", text)
    functions = 0
    for path, names in maps:
        places = [place for place in (DOCS.parent / "src/spit" / path, DOCS.parent / path) if place.is_file()]
        assert places, path
        for name in re.findall(r"`([A-Za-z_.]+)`", names):
            assert name in named(ast.parse(places[0].read_text())), f"{path} has no {name}"
            functions += 1
    assert functions > 40
