from pathlib import Path

import pytest
import torch

from spit.data.folders import image_paths
from spit.evaluation.counts import PAPER, evaluate, sheet, square
from spit.tokenizers import SuperpixelTokenizer


def test_means_over_images(labelled: Path) -> None:
    paths = image_paths(labelled)[:5]
    rows = evaluate(paths, [32, 40], batch=2)
    assert [(row.size, row.level) for row in rows] == [(size, level) for size in (32, 40) for level in (1, 2, 3, 4)]
    counts = [SuperpixelTokenizer().hierarchy(square(path, 32)).counts[1:, 0] for path in paths]
    assert [row.regions.value for row in rows[:4]] == pytest.approx(torch.stack(counts).double().mean(0).tolist())
    assert all(row.regions.low < row.regions.value < row.regions.high and row.regions.images == 5 for row in rows)


def test_beside_the_paper(labelled: Path) -> None:
    [row] = evaluate(image_paths(labelled)[:1], [224], SuperpixelTokenizer(levels=1))
    assert row.paper == PAPER[224][0]
    assert row.change == pytest.approx(row.regions.value / 11940.278 - 1)
    assert evaluate(image_paths(labelled)[:1], [32], SuperpixelTokenizer(levels=1))[0].change is None
    assert "11940.3" in sheet([row], "about").markdown()


def test_levels_after_the_last_have_no_figure_in_the_paper(labelled: Path) -> None:
    rows = evaluate(image_paths(labelled)[:1], [32], SuperpixelTokenizer(levels=2, max_tokens=5))
    assert (len(rows), rows[-1].regions.value, rows[-1].paper) == (3, 5, None)


def test_a_square_is_the_middle(tmp_path: Path, labelled: Path) -> None:
    path = image_paths(labelled)[0]  # 48 × 40
    from spit.data.images import load_image

    assert torch.equal(square(path, 40), load_image(path)[:, :, 4:44])


def test_a_stopped_run_goes_on(labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths, journal = image_paths(labelled)[:4], tmp_path / "images.jsonl"
    whole = evaluate(paths, [32], batch=2, journal=tmp_path / "other.jsonl")
    evaluate(paths[:2], [32], batch=2, journal=journal)
    steps: list[tuple[int, int]] = []
    assert evaluate(paths, [32], journal=journal, progress=lambda _, done, total: steps.append((done, total))) == whole
    assert steps == [(2, 4), (4, 4)]
    monkeypatch.setattr("spit.evaluation.counts.square", None)  # nothing is counted again
    assert evaluate(paths, [32], journal=journal) == whole
