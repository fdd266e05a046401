import sys

import pytest
from PIL import Image

from spit.errors import MissingExtra
from spit.evaluation.faithfulness import Row
from spit.evaluation.faithfulness_plot import check_matplotlib, draw_curves
from spit.evaluation.intervals import mean


def test_a_column_for_each_model(tmp_path):
    rows = [Row(model, "patch", method, 2, mean([0.1, 0.2]), mean([0.5, 0.6]), None, {}, [0, 0.5, 1], [0.9, 0.4, 0.1],
                [0.1, 0.6, 0.9]) for model in ("a", "b") for method in ("flow", "random")]
    for models, width in ((rows, 1300), (rows[:2], 715)):
        draw_curves(models, "Two images", tmp_path / "out" / "curves.png")
        with Image.open(tmp_path / "out" / "curves.png") as picture:
            assert abs(picture.width - width) < 10
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["curves.png"]


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"\[plots\]"):
        check_matplotlib()
