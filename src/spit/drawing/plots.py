"""The parts that every plot shares, with matplotlib."""

import io
from typing import Any

from spit.errors import MissingExtra


def check_matplotlib() -> Any:
    """The module ``matplotlib.figure``; raises MissingExtra before the work that would fail after it."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots", "drawing curves") from error
    return matplotlib.figure


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
