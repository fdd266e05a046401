"""Models on other tokenizers than their own."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

import spit
from spit.evaluation.classification import Classification
from spit.evaluation.options import Tokenizers
from spit.evaluation.runner import Runner
from spit.evaluation.samples import LabelledFolder, labelled_folder
from spit.evaluation.swap import TOKENIZERS, Swap
from spit.predictor import Predictor

Make = Callable[..., Predictor]


@dataclass(frozen=True)
class Whole(spit.PatchTokenizer):
    """Squares that are in no table of the paper."""

    family = ""


@pytest.fixture
def folder(labelled: Path) -> LabelledFolder:
    return labelled_folder(labelled).spread(6)


def test_every_tokenizer_on_every_model(predictor: Make, folder: LabelledFolder) -> None:
    predictors = [predictor("superpixel", levels=2), predictor("patch", size=8)]
    steps: list[tuple[int, int]] = []
    with Runner(None, lambda _, done, total: steps.append((done, total))) as runner:
        rows = runner.rows(Swap(predictors, folder))
        own = runner.rows(Classification(predictors, folder))
    assert (84, 84) in steps  # 2 models, 7 runs, 6 images
    assert [(row.model, row.tokenizer) for row in rows] == [
        (name, kind) for name in ("small-superpixel", "small-patch") for kind in TOKENIZERS]
    assert [row.own for row in rows] == [False, False, True, True, False, False]
    assert (rows[2].top1, rows[3].top1) == (own[0].top1, own[1].top1)  # its own options are kept
    assert rows[3].tokens == 16
    for row in rows:
        assert (row.change is None) == row.own
        assert (row.runs, row.top1.spread is not None) == ((5, True) if row.tokenizer == "voronoi" else (1, False))
        base = rows[2] if row.model == "small-superpixel" else rows[3]
        if row.change is not None:
            assert row.change.value == pytest.approx(row.top1.value - base.top1.value)


def test_without_its_own_a_model_is_compared_with_the_first(predictor: Make, folder: LabelledFolder) -> None:
    with Runner() as runner:
        report = runner.evaluate(Swap([predictor()], folder, tokenizers=Tokenizers(("voronoi,seed=1", "patch"))))
    first, other = report.rows
    assert (first.change, first.own, first.runs) == (None, False, 1)
    assert other.change.value == pytest.approx(other.top1.value - first.top1.value)
    [(*_, told, _, _), (*_, change, _, _)] = report.sheets[0].cells
    assert (told, change) == ("first", other.change.signed())
    assert "seeds 0 to 4" not in report.notes


@pytest.mark.usefixtures("restored_parts")
def test_a_tokenizer_of_no_family_goes_first(predictor: Make, folder: LabelledFolder) -> None:
    spit.register_tokenizer("whole", Whole)
    swap = Swap([predictor("whole", size=16), predictor("published", levels=2)], folder)
    names = [[one.tokenizer for one in variants] for variants in swap.variants]
    assert names == [["whole", *TOKENIZERS], ["patch", "voronoi", "published"]]
    assert [[one.own for one in variants].index(True) for variants in swap.variants] == [0, 2]


def test_equal_counts_are_in_table_and_journal(predictor: Make, folder: LabelledFolder, tmp_path: Path) -> None:
    """Tokenizers, and the same ones on equal counts, do not share answers."""
    model, asked = predictor(levels=2), ("patch,size=8", "voronoi,seed=0", "superpixel")
    for equal, told in ((False, 0), (True, 6), (True, 18)):
        with Runner(tmp_path / "images.jsonl") as runner:
            report = runner.evaluate(Swap([model], folder, tokenizers=Tokenizers(asked, equal_counts=equal)))
        assert runner.resumed == told, "patches are the reference and stay the same"
        assert report.document().get("equal_counts") == ("patch,size=8" if equal else None)
        assert ("as many tokens of an image" in report.notes) == equal
        assert ([row.tokens for row in report.rows] == [16, 16, 16]) == equal
    assert len((tmp_path / "images.jsonl").read_text().splitlines()) == 6 * (3 + 2)


def test_a_figure_of_every_model_and_tokenizer(predictor: Make, folder: LabelledFolder) -> None:
    pytest.importorskip("matplotlib")
    models = [predictor("superpixel", levels=2), predictor("patch", size=8)]
    with Runner() as runner:
        report = runner.evaluate(Swap(models, folder, tokenizers=Tokenizers(("patch", "superpixel,levels=3"))), True)
    assert list(report.pictures) == ["swap.png", "swap.svg", "swap.pdf"]
    assert Image.open(io.BytesIO(report.pictures["swap.png"])).width > 500
