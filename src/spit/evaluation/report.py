"""Report: what an evaluation found, as tables, as JSON, as Markdown and as LaTeX."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from spit import __version__
from spit.devices import machine
from spit.documents import Sheet, as_text
from spit.wording import plural


@dataclass(frozen=True)
class Report:
    """What an evaluation found.

    Attributes:
        data, images: the folder, and how many images of it.
        settings: told in the head of the tables and in :meth:`document`; ``about`` in the latter only.
        rows: dataclasses.
        pictures: files of figures by name.
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

    def latex(self) -> str:
        """The tables for a paper, with title, head and notes as comments."""
        about = [f"% {line}" for line in (self.title, self.head, self.notes, r"needs \usepackage{booktabs}")]
        return "\n".join([*about, "", *(sheet.latex() for sheet in self.sheets)])

    def files(self) -> dict[str, bytes]:
        """All of it as files by name."""
        texts = {"results.json": json.dumps(self.document(), indent=2) + "\n", "results.md": self.markdown(),
                 "results.tex": self.latex()}
        return {**{name: text.encode() for name, text in texts.items()}, **self.pictures}
