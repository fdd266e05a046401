"""A table of results before it is drawn: in a terminal, or in Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sheet:
    """A table.

    Attributes:
        headings: of the columns; those after the first ``words`` hold figures.
        about: data, machine and setting, in a line.
        notes: how the figures came about.
    """

    title: str
    headings: Sequence[str]
    cells: Sequence[Sequence[str]]
    about: str
    words: int = 1
    notes: str = ""

    def markdown(self) -> str:
        """The table with its title and notes."""
        rule = ["---"] * self.words + ["---:"] * (len(self.headings) - self.words)
        rows = [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"
                for row in (self.headings, *self.cells)]
        lines = [f"# {self.title}", "", self.about, "", rows[0], f"|{'|'.join(rule)}|", *rows[1:]]
        return "\n".join([*lines, "", self.notes, ""] if self.notes else [*lines, ""])
