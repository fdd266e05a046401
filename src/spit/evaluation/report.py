"""Report: what an evaluation found, as tables, as JSON and as Markdown."""

import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from spit import __version__
from spit.tokens import plural


@dataclass(frozen=True)
class Sheet:
    """A table.

    Attributes:
        headings: of the columns; those after the first ``words`` hold figures.
        title: if a report has several tables.
        marked: indices of rows to emphasise.
    """

    headings: Sequence[str]
    cells: Sequence[Sequence[str]]
    words: int = 1
    title: str = ""
    marked: Collection[int] = ()

    def markdown(self) -> str:
        """The table with its title."""
        rows = [[cell.replace("|", "&#124;") for cell in row] for row in (self.headings, *self.cells)]
        for index in self.marked:
            rows[index + 1][0] = f"**{rows[index + 1][0]}**"
        rule = ["---"] * self.words + ["---:"] * (len(self.headings) - self.words)
        lines = [f"| {' | '.join(row)} |" for row in rows]
        title = [f"## {self.title}", ""] if self.title else []
        return "\n".join([*title, lines[0], f"|{'|'.join(rule)}|", *lines[1:], ""])


@dataclass(frozen=True)
class Report:
    """What an evaluation found.

    Attributes:
        title, notes: of the tables; the notes say how the figures came about.
        data, images: the folder, and how many images of it.
        settings: told in the head of the tables and in :meth:`document`.
        about: told in :meth:`document` only.
        rows: dataclasses.
        pictures: PNG files by name.
    """

    title: str
    notes: str
    sheets: Sequence[Sheet]
    data: str
    images: int
    settings: Mapping[str, Any]
    about: Mapping[str, Any]
    rows: Sequence[Any]
    pictures: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def _device(self) -> str:
        return str(self.about.get("device", "cpu"))

    @property
    def head(self) -> str:
        """Data, settings and machine in a line."""
        data = self.data if self.data.isprintable() else repr(self.data)
        settings = "".join(f"; {key} {value}" for key, value in self.settings.items())
        return f"{plural(self.images, 'image')} of {data}{settings}; {machine(self._device)}."

    def document(self) -> dict[str, Any]:
        """Everything but the pictures, as JSON has it."""
        return {"data": self.data, "images": self.images, **self.settings, **self.about,
                "machine": machine(self._device), "spit": __version__, "rows": [asdict(row) for row in self.rows]}

    def markdown(self) -> str:
        """The tables with title, head and notes."""
        return "\n".join([f"# {self.title}", "", self.head, "", *(sheet.markdown() for sheet in self.sheets),
                          self.notes, ""])


def machine(device: torch.device | str = "cuda") -> str:
    """The GPU, or the processor with its threads if there is none or the device is a CPU."""
    if torch.device(device).type == "cuda" and torch.cuda.is_available():
        return torch.cuda.get_device_name(device)
    return f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
