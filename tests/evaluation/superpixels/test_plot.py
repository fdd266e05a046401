import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from spit.evaluation.superpixels import METHODS, Row
from spit.evaluation.superpixels.plot import draw_comparison

ROWS = [Row(method=method.name, title=method.title, ours=method.ours, wanted=wanted, parameter="p", settings={"1": 1},
            images=1, regions=wanted * 0.98, labels=wanted, explained_variation=0.6 + place / 50 + wanted / 1e4,
            achievable_accuracy=0.9, undersegmentation_error=0.1, boundary_recall=0.7 + place / 50, compactness=0.3,
            connected=1.0, milliseconds=10.0 * (place + 1), milliseconds_mean=1.0)
        for place, method in enumerate(METHODS.values()) for wanted in (100, 600, 2000)]


@pytest.mark.parametrize("counts", [(600,), (100, 600, 2000)], ids=["dots", "curves"])
def test_a_picture(counts: tuple[int, ...]) -> None:
    pytest.importorskip("matplotlib")
    picture = draw_comparison([row for row in ROWS if row.wanted in counts], "Title")
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
    assert pixels.shape[1] > 1000
    assert (pixels == (0x1B, 0x78, 0x37)).all(axis=2).sum() > 100  # ours


def test_one_method_that_scores_nothing() -> None:
    pytest.importorskip("matplotlib")
    assert len(draw_comparison([replace(ROWS[0], explained_variation=0.0, milliseconds=1.0)], "Title")) > 1000
