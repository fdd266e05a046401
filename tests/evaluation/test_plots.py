import sys

import pytest

from spit.errors import MissingExtra
from spit.evaluation.plots import check_matplotlib, new_figure, png_of, tidy


def test_a_figure_as_a_file() -> None:
    pytest.importorskip("matplotlib")
    figure = new_figure(2, 1, "title")
    tidy(figure.subplots(), "axes")
    assert png_of(figure).startswith(b"\x89PNG")


def test_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match="plots"):
        check_matplotlib()
