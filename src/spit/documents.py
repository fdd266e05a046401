"""JSON: a text from outside that cannot be read is a ValueError, however damaged; differences; tables."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = 3  # differences that a message names
WIDTH = 40  # characters of a value in it
LATEX = str.maketrans({
    **{sign: f"\\{sign}" for sign in "&%$#_{}"}, **{sign: f"${sign}$" for sign in "|<>"}, "[": "{[}", "−": "$-$",
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
    "×": r"$\times$", "²": "$^2$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "β": r"$\beta$", "τ": r"$\tau$"})


def read_json(text: str | bytes) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:  # a thousand brackets; no document of ours has ten
        raise ValueError("expected lists and objects at most a few levels deep, got more than can be read") from None


def reason(error: Exception) -> str:
    """An error in words, as a part of a message."""
    if isinstance(error, KeyError):
        return f"the key {error} is missing"
    return (isinstance(error, OSError) and error.strerror) or str(error)


def expect_object(value: Any, what: str) -> dict[str, Any]:
    """A value of JSON that should be an object; TypeError if it is none."""
    if not isinstance(value, dict):
        raise TypeError(f"expected {what} as an object, got {type(value).__name__}")
    return value


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dots in the keys."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between two documents, as ``key was …, is …``, with dots in keys; empty if nothing does."""
    old, new = flat(before), flat(now)
    changed = [name for name in (*new, *sorted(old.keys() - new.keys())) if old.get(name) != new.get(name)]
    shown = [f"{name} was {_short(old.get(name))}, is {_short(new.get(name))}" for name in changed[:SHOWN]]
    return "; ".join([*shown, *([f"and {len(changed) - SHOWN} more"] if len(changed) > SHOWN else [])])


def _short(value: Any) -> str:
    """A value as JSON has it; of a long one the beginning, with its quotes and brackets closed."""
    if value is None:
        return "not set"
    if isinstance(value, str):
        return json.dumps(value if len(value) <= WIDTH else f"{value[:WIDTH]}…", ensure_ascii=False)
    text = json.dumps(value, ensure_ascii=False)
    return text if not isinstance(value, list) or len(text) <= WIDTH else f"[{_short(value[0])}, …]"


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

    def latex(self) -> str:
        """The table as a tabular of the package booktabs; the title is a comment."""
        rows = [[as_latex(cell) for cell in row] for row in (self.headings, *self.cells)]
        for index in self.marked:
            rows[index + 1][0] = rf"\textbf{{{rows[index + 1][0]}}}"
        heading, *lines = [" & ".join(row) + r" \\" for row in rows]
        columns = "l" * self.words + "r" * (len(self.headings) - self.words)
        title = [f"% {self.title}"] if self.title else []
        return "\n".join([*title, rf"\begin{{tabular}}{{{columns}}}", r"\toprule", heading, r"\midrule", *lines,
                          r"\bottomrule", r"\end{tabular}", ""])


def as_latex(text: str) -> str:
    """A text as LaTeX prints it; the hyphen before a number is a minus."""
    return re.sub(r"(?<![\w$])-(?=\d)", "$-$", text.translate(LATEX))


def as_text(value: Any) -> str:
    """A setting as a report shows it: ``yes``, ``none``, or ``0.1, 0.2``."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(as_text, value)) if isinstance(value, list | tuple) else str(value)
