import os
from collections.abc import Callable
from dataclasses import replace
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from spit.errors import SpitError
from spit.evaluation.runner import Runner
from spit.evaluation.samples import Sample
from spit.evaluation.superpixels import (
    METHODS,
    Comparing,
    Comparison,
    Method,
    Row,
    choose_methods,
    comparison,
    find_samples,
)
from spit.evaluation.superpixels.comparison import CLOSE, MIXABLE, TRIES, calibrate
from spit.evaluation.superpixels.workers import open_workers


def columns(image: np.ndarray, width: float) -> np.ndarray:
    """Stripes of a whole width."""
    return np.broadcast_to(np.arange(image.shape[1]) // round(width), image.shape[:2])


STRIPES = Method("stripes", "Stripes", "width", -1.0, lambda wanted, _: 90 / wanted, columns, whole=True, package="np")


def evaluate(samples: list[Sample], methods: list[Method], counts: list[int], workers: int = 0,
             journal: Path | None = None, **options: Any) -> list[Row]:
    with Runner(journal, **options) as runner:
        return runner.rows(Comparison(Path("data"), samples, methods, counts, workers))


@pytest.fixture
def stripes(monkeypatch: pytest.MonkeyPatch) -> Method:
    monkeypatch.setitem(METHODS, "stripes", STRIPES)
    return STRIPES


def test_two_settings_are_mixed_to_reach_the_count(folder: Callable[[int], Path], stripes: Method) -> None:
    """90 columns give 15 stripes of 6 and 18 of 5; 17 is two thirds of the way."""
    (row,) = evaluate(find_samples(folder(9)), [stripes], [17])
    assert row.settings == {"5": 6, "6": 3}
    assert row.regions == 17
    assert row.connected == 1


def test_coarser_until_the_mean_is_at_most_the_count(folder: Callable[[int], Path], stripes: Method,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "calibrate", lambda *_: 5)
    (row,) = evaluate(find_samples(folder(4)), [stripes], [17])
    assert row.settings == {"5": 2, "6": 2}
    assert row.regions == 16.5


def test_a_calibration_that_was_misled_is_put_right(folder: Callable[[int], Path], stripes: Method,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """13 stripes of 7, where 17 were wanted; 23 of 4 make up for it."""
    monkeypatch.setattr(comparison, "calibrate", lambda *_: 7)
    (row,) = evaluate(find_samples(folder(9)), [stripes], [17])
    assert row.settings == {"7": 6, "4": 3}
    assert row.regions == pytest.approx((6 * 13 + 3 * 23) / 9)


def test_counts_that_jump_are_told_and_not_mixed(folder: Callable[[int], Path], stripes: Method) -> None:
    (row,) = evaluate(find_samples(folder(3)), [replace(stripes, jumps=True)], [60], workers=0)
    assert (row.wanted, row.regions, row.settings) == (60, 45, {"2": 3})


def test_a_stopped_run_resumes(folder: Callable[[int], Path], stripes: Method, tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    samples, journal = find_samples(folder(9)), tmp_path / "images.jsonl"
    (whole,) = evaluate(samples, [stripes], [17], 0, journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    calls: list[str] = []
    for name in ("measure", "count"):
        original = getattr(comparison, name)

        def counted(task: Any, original: Any = original) -> Any:
            calls.append(task[0].name)
            return original(task)

        counted.__name__ = name
        monkeypatch.setattr(comparison, name, counted)
    for kept in (4, len(lines) // 2, len(lines)):
        calls.clear()
        journal.write_bytes(b"".join(lines[:kept]) + b'{"cut": ')
        (again,) = evaluate(samples, [stripes], [17], 0, journal)
        assert again.settings == whole.settings
        assert again.explained_variation == whole.explained_variation
        assert len(calls) == len(lines) - kept


def test_a_replaced_segmentation_is_measured_again(folder: Callable[[int], Path], stripes: Method,
                                                   tmp_path: Path) -> None:
    root, journal = folder(3), tmp_path / "images.jsonl"
    (before,) = evaluate(find_samples(root), [stripes], [15], 0, journal)
    Image.fromarray(np.zeros((60, 90), np.uint8)).save(root / "labels" / "1_1.png")
    with Runner(journal) as runner:
        (after,) = runner.rows(Comparison(root, find_samples(root), [stripes], [15], 0))
    assert (runner.done, runner.resumed) == (3, 2)
    assert after.achievable_accuracy > before.achievable_accuracy


def test_a_table_for_each_count(folder: Callable[[int], Path], stripes: Method) -> None:
    with Runner() as runner:
        report = runner.evaluate(Comparison(Path("data"), find_samples(folder(2)), [stripes, METHODS["spit"]], [9, 18],
                                            workers=0))
    assert [sheet.title.partition(";")[0] for sheet in report.sheets] == ["About 9 regions", "About 18 regions"]
    assert "| **spit** |" in report.markdown()
    assert report.document()["versions"]["numpy"]


def test_options() -> None:
    asked = Comparing(algorithm=("slic,spit", "seeds")).methods()
    assert [method.name for method in asked] == ["slic", "spit", "seeds"]
    assert len(Comparing().methods()) == len(METHODS)
    with pytest.raises(ValueError, match="did you mean 'seeds'"):
        Comparing(algorithm=("seed",)).methods()


def test_real_methods_in_processes(folder: Callable[[int], Path]) -> None:
    """Their labels are the same as in this process, and the environment is left alone."""
    samples, methods = find_samples(folder(3)), choose_methods(["slic", "spit-unrefined"])
    before = dict(os.environ), torch.get_num_threads()
    seen: list[tuple[str, int, int]] = []
    rows = evaluate(samples, methods, [40, 20], workers=2, progress=lambda *step: seen.append(step))
    assert (dict(os.environ), torch.get_num_threads()) == before
    assert seen[-1][1:] == (12, 12)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert [(row.method, row.wanted) for row in rows] == [("slic", 20), ("slic", 40), ("spit-unrefined", 20),
                                                          ("spit-unrefined", 40)]
    for row, other in zip(rows, evaluate(samples, methods, [40, 20], workers=0), strict=True):
        assert row.images == 3
        assert row.milliseconds > 0
        assert (row.settings, row.regions, row.explained_variation, row.boundary_recall) == (
            other.settings, other.regions, other.explained_variation, other.boundary_recall)


def test_a_peer_that_fails_is_named(folder: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(image: np.ndarray, parameter: float) -> np.ndarray:
        raise RuntimeError("no")

    monkeypatch.setitem(METHODS, "stripes", Method("stripes", "Stripes", "width", -1.0, lambda *_: 5, fail, True, "np"))
    with pytest.raises(SpitError, match=r"Stripes failed on .*0\.png with width 5: no; leave it out"):
        evaluate(find_samples(folder(1)), [METHODS["stripes"]], [17])


def test_one_thread_in_this_process_and_back() -> None:
    before = torch.get_num_threads()
    with open_workers(0) as spread_out:
        assert torch.get_num_threads() == 1
        assert fmean(spread_out(float, ["1", "3"])) == 2
    assert torch.get_num_threads() == before


def method(slope: float, whole: bool = False) -> Method:
    """One whose guess is always 10."""
    return Method("m", "m", "p", slope, lambda *_: 10.0, lambda image, _: np.zeros(image.shape[:2], int), whole, "p")


def counting(count: Callable[[float], float]) -> tuple[Callable[[float], float], list[float]]:
    calls: list[float] = []

    def mean_count(parameter: float) -> float:
        calls.append(parameter)
        return count(parameter)

    return mean_count, calls


@given(st.floats(-3, 3).filter(lambda s: abs(s) > 0.3), st.floats(0.7, 1.4), st.floats(50, 3000))
def test_a_straight_line_is_found_in_few_steps(slope: float, error: float, at_guess: float) -> None:
    mean_count, calls = counting(lambda p: at_guess * (p / 10) ** (slope * error))
    parameter = calibrate(method(slope), 600, 150_000, mean_count)
    assert abs(log(at_guess * (parameter / 10) ** (slope * error) / 600)) <= CLOSE
    assert len(calls) <= TRIES


def test_no_more_than_needed() -> None:
    mean_count, calls = counting(lambda p: 60 * p)
    assert calibrate(method(1), 600, 0, mean_count) == 10
    assert calls == [10]
    mean_count, calls = counting(lambda p: 30 * p)
    assert calibrate(method(1), 600, 0, mean_count) == 20
    assert calls == [10, 20]
    assert calibrate(method(1), 600, 0, mean_count, drift=2) == 20
    assert calls == [10, 20, 20]


def test_whole_parameters_end_at_the_nearest() -> None:
    mean_count, calls = counting(lambda p: 600 * (15.4 / p) ** 2)
    assert calibrate(method(-2, whole=True), 600, 0, mean_count) == 15
    assert all(p == round(p) for p in calls)


@pytest.mark.parametrize(("wanted", "expected"), [(600, 602), (400, 260), (250, 260), (100, 60)])
def test_jumps(wanted: int, expected: int) -> None:
    """Counts as SEEDS has them: where none is near, the closest below."""
    def seeds(p: float) -> float:
        return 60 if p < 13 else 260 if p < 33 else 602

    assert seeds(calibrate(method(1, whole=True), wanted, 0, seeds)) == expected
    assert expected <= wanted or log(expected / wanted) < MIXABLE


def test_out_of_reach() -> None:
    assert calibrate(method(1), 600, 0, lambda p: 5000 + p) > 0
    assert calibrate(method(1), 600, 0, lambda p: 5) > 0
