from pathlib import Path

import pytest
import torch

from spit.data.images import load_image
from spit.evaluation.counts import PAPER, CountCase, Counts, square
from spit.evaluation.runner import Runner
from spit.evaluation.samples import Sample, find_images
from spit.tokenizers import SuperpixelTokenizer


@pytest.fixture
def samples(labelled: Path) -> list[Sample]:
    return find_images(labelled)[:5]


def test_means_over_images(labelled: Path, samples: list[Sample]) -> None:
    rows = Runner(batch=2).rows(Counts(labelled, samples, [32, 40]))
    assert [(row.size, row.level) for row in rows] == [(size, level) for size in (32, 40) for level in (1, 2, 3, 4)]
    counts = [SuperpixelTokenizer().hierarchy(square(sample.image, 32)).counts[1:, 0] for sample in samples]
    assert [row.regions.value for row in rows[:4]] == pytest.approx(torch.stack(counts).double().mean(0).tolist())
    assert all(row.regions.low < row.regions.value < row.regions.high and row.regions.images == 5 for row in rows)


def test_beside_the_paper(labelled: Path, samples: list[Sample]) -> None:
    report = Runner().evaluate(Counts(labelled, samples[:1], [224], SuperpixelTokenizer(levels=1)))
    [row] = report.rows
    assert row.paper == PAPER[224][0]
    assert row.change == pytest.approx(row.regions.value / 11940.278 - 1)
    assert "11940.3" in report.markdown()
    assert Runner().rows(Counts(labelled, samples[:1], [32], SuperpixelTokenizer(levels=1)))[0].change is None


def test_levels_after_the_last_have_no_figure_in_the_paper(labelled: Path, samples: list[Sample]) -> None:
    rows = Runner().rows(Counts(labelled, samples[:1], [32], SuperpixelTokenizer(levels=2, max_tokens=5)))
    assert (len(rows), rows[-1].regions.value, rows[-1].paper) == (3, 5, None)


def test_merges_beside_the_paper(labelled: Path, samples: list[Sample]) -> None:
    tokenizer = SuperpixelTokenizer(preset="published", levels=2, merge_threshold=0.1)
    rows = Runner().rows(Counts(labelled, samples[:1], [384], tokenizer, interpolation="bilinear"))
    assert [row.paper for row in rows] == [*PAPER[384][:2], 441.6]
    for size, other in ((32, 0.1), (384, 0.11)):
        case = CountCase(tokenizer.replace(merge_threshold=other), size, torch.device("cpu"))
        assert case.paper(3) is None


def test_interpolation_is_part_of_the_case(samples: list[Sample]) -> None:
    assert not torch.equal(square(samples[0].image, 64), square(samples[0].image, 64, "bilinear"))
    cases = [CountCase(SuperpixelTokenizer(), 32, torch.device("cpu"), one) for one in ("bicubic", "bilinear")]
    assert cases[0].config() != cases[1].config()


def test_a_square_is_the_middle(samples: list[Sample]) -> None:
    path = samples[0].image  # 48 × 40
    assert torch.equal(square(path, 40), load_image(path)[:, :, 4:44])


def test_a_stopped_run_resumes(labelled: Path, samples: list[Sample], tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "images.jsonl"
    whole = Runner().rows(Counts(labelled, samples, [32]))
    with Runner(journal) as runner:
        runner.rows(Counts(labelled, samples[:2], [32]))
    steps: list[tuple[int, int]] = []
    with Runner(journal, lambda _, done, total: steps.append((done, total))) as runner:
        assert runner.rows(Counts(labelled, samples, [32])) == whole
    assert steps == [(2, 5), (5, 5)]
    monkeypatch.setattr("spit.evaluation.counts.square", None)  # nothing is counted again
    with Runner(journal) as runner:
        assert runner.rows(Counts(labelled, samples, [32])) == whole
