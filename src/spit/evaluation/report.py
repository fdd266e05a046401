"""Report: what an evaluation found, as tables, as JSON and as Markdown, and the parts that every plot shares."""

import io
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from spit import __version__
from spit.evaluation.libraries import library
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
        data, images: the folder, and how many images of it.
        settings: told in the head of the tables and in :meth:`document`; ``about`` in the latter only.
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
        settings = "".join(f"; {key} {as_text(value)}" for key, value in self.settings.items())
        return f"{plural(self.images, 'image')} of {data}{settings}; {machine(self._device)}."

    def document(self) -> dict[str, Any]:
        """Everything but the pictures, as JSON has it."""
        return {"data": self.data, "images": self.images, **self.settings, **self.about,
                "machine": machine(self._device), "spit": __version__, "rows": [asdict(row) for row in self.rows]}

    def markdown(self) -> str:
        """The tables with title, head and notes."""
        return "\n".join([f"# {self.title}", "", self.head, "", *(sheet.markdown() for sheet in self.sheets),
                          self.notes, ""])


def as_text(value: Any) -> str:
    """A setting as a report shows it: ``yes``, ``none``, or ``0.1, 0.2``."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(as_text, value)) if isinstance(value, list | tuple) else str(value)


def machine(device: torch.device | str = "cuda") -> str:
    """The GPU, or the processor with its threads if there is none or the device is a CPU."""
    if torch.device(device).type == "cuda" and torch.cuda.is_available():
        return torch.cuda.get_device_name(device)
    return f"{platform.processor() or platform.machine()}, {plural(torch.get_num_threads(), 'thread')}"


def check_matplotlib() -> Any:
    """The module ``matplotlib.figure``; raises MissingExtra before the work that would fail after it."""
    return library("matplotlib.figure", "drawing curves")


def new_figure(width: float, height: float, title: str) -> Any:
    """An empty figure, in inches."""
    figure = check_matplotlib().Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize=13)
    return figure


def tidy(axes: Any, title: str = "") -> None:
    """A light grid, no frame above and to the right."""
    axes.grid(True, which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if title:
        axes.set_title(title, fontsize=10.5, loc="left")


def png_of(figure: Any) -> bytes:
    """The figure as a PNG file, which says that spit wrote it."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=130, format="png", metadata={"Software": "spit"})
    return buffer.getvalue()
