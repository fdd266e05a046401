import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from spit.evaluation.superpixels import METHODS, Row
from spit.evaluation.superpixels.summary import draw_comparison, missed, ranked, summarize


def record(image: str, regions: int, parameter: float = 15, variation: float = 0.8, seconds: float = 0.1) -> dict:
    return {"image": image, "parameter": parameter, "seconds": seconds, "regions": regions, "labels": 500,
            "explained_variation": variation, "achievable_accuracy": 0.95, "undersegmentation_error": 0.1,
            "boundary_recall": 0.7, "compactness": 0.4}


ROWS = [
    summarize(METHODS["slic"], 600, [record("a", 500), record("b", 600, 16), record("c", 640, seconds=4)]),
    summarize(METHODS["spit"], 600, [record("a", 600, 600, 0.9)]),
]
DRAWN = [Row(method=method.name, title=method.title, ours=method.ours, wanted=wanted, parameter="p", settings={"1": 1},
            images=1, regions=wanted * 0.98, labels=wanted, explained_variation=0.6 + place / 50 + wanted / 1e4,
            achievable_accuracy=0.9, undersegmentation_error=0.1, boundary_recall=0.7 + place / 50, compactness=0.3,
            connected=1.0, milliseconds=10.0 * (place + 1), milliseconds_mean=1.0)
        for place, method in enumerate(METHODS.values()) for wanted in (100, 600, 2000)]


def test_means_and_a_median_time() -> None:
    row = ROWS[0]
    assert row.regions == 580
    assert row.connected == pytest.approx(1 / 3)
    assert row.milliseconds == 100
    assert row.milliseconds_mean == pytest.approx(1400)
    assert row.cells()[-1] == "spacing 15 (2), 16 (1)"
    assert ROWS[1].cells()[-1] == "n 600"


def test_the_best_first() -> None:
    assert [row.method for row in ranked(ROWS, 600)] == ["spit", "slic"]
    assert ROWS[0].cells()[1:-1] == ["580.0", "0.8000", "0.9500", "0.1000", "0.7000", "0.400", "33%", "100.0"]


def test_counts_out_of_reach() -> None:
    row = summarize(METHODS["slic"], 300, [record("a", 500)])
    assert missed([*ROWS, row]) == ["SLIC (scikit-image) cannot be brought to 300 regions; it has 500"]


@pytest.mark.parametrize("counts", [(600,), (100, 600, 2000)], ids=["dots", "curves"])
def test_a_picture(counts: tuple[int, ...]) -> None:
    pytest.importorskip("matplotlib")
    picture = draw_comparison([row for row in DRAWN if row.wanted in counts], "Title")
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
    assert pixels.shape[1] > 1000
    assert (pixels == (0x1B, 0x78, 0x37)).all(axis=2).sum() > 100  # ours


def test_one_method_that_scores_nothing() -> None:
    pytest.importorskip("matplotlib")
    assert len(draw_comparison([replace(DRAWN[0], explained_variation=0.0, milliseconds=1.0)], "Title")) > 1000
