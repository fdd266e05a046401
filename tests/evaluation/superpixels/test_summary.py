import pytest

from spit.evaluation.superpixels import METHODS
from spit.evaluation.superpixels.summary import missed, ranked, setting, summarize


def record(image: str, regions: int, parameter: float = 15, variation: float = 0.8, seconds: float = 0.1) -> dict:
    return {"image": image, "parameter": parameter, "seconds": seconds, "regions": regions, "labels": 500,
            "explained_variation": variation, "achievable_accuracy": 0.95, "undersegmentation_error": 0.1,
            "boundary_recall": 0.7, "compactness": 0.4}


ROWS = [
    summarize(METHODS["slic"], 600, [record("a", 500), record("b", 600, 16), record("c", 640, seconds=4)]),
    summarize(METHODS["spit"], 600, [record("a", 600, 600, 0.9)]),
]


def test_means_and_a_median_time() -> None:
    row = ROWS[0]
    assert row.regions == 580
    assert row.connected == pytest.approx(1 / 3)
    assert row.milliseconds == 100
    assert row.milliseconds_mean == pytest.approx(1400)
    assert setting(row) == "spacing 15 (2), 16 (1)"
    assert setting(ROWS[1]) == "n 600"


def test_the_best_first() -> None:
    assert [row.method for row in ranked(ROWS, 600)] == ["spit", "slic"]
    assert ROWS[0].cells() == ["580.0", "0.8000", "0.9500", "0.1000", "0.7000", "0.400", "33%", "100.0"]


def test_counts_out_of_reach() -> None:
    row = summarize(METHODS["slic"], 300, [record("a", 500)])
    assert missed([*ROWS, row]) == ["SLIC (scikit-image) cannot be brought to 300 regions; it has 500"]
