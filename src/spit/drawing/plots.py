"""The parts that every plot shares, with matplotlib."""

import io
from typing import Any

from spit.errors import MissingExtra

METADATA = {"png": {"Software": "spit"}, "svg": {"Creator": "spit", "Date": None},
            "pdf": {"Creator": "spit", "CreationDate": None}}


def check_matplotlib() -> Any:
    """The module ``matplotlib.figure``; raises MissingExtra before the work that would fail after it."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots", "drawing figures") from error
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
    return _file_of(figure, "png")


def files_of(figure: Any, name: str) -> dict[str, bytes]:
    """The figure as a PNG, an SVG and a PDF file of one name."""
    return {f"{name}.{kind}": _file_of(figure, kind) for kind in METADATA}


def _file_of(figure: Any, kind: str) -> bytes:
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "spit", "pdf.fonttype": 42}):  # equal bytes; fonts that journals take
        figure.savefig(buffer, dpi=130, format=kind, metadata=METADATA[kind])
    return buffer.getvalue()
