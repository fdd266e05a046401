"""Cases over folders: figures, resumption, replaced masks, pages."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from spit.answers import Segment
from spit.config import ModelConfig
from spit.errors import ImageError
from spit.evaluation.masks import find_samples, read_pair
from spit.evaluation.report import Report
from spit.evaluation.runner import Runner
from spit.evaluation.saliency import Saliency, SaliencyCase, baseline_cases
from spit.evaluation.samples import Sample
from spit.model import SpitModel
from spit.predictor import Predictor


@pytest.fixture(scope="module")
def tiny() -> Predictor:
    torch.manual_seed(0)
    return Predictor(SpitModel(ModelConfig(
        tokenizer_options={"levels": 2}, resolution=4, position_bins=4, gradients=False, width=32, depth=1, heads=2,
        layer_scale=None, num_classes=2)).eval(), "tiny")


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    """Four discs on a dark ground, one of them unmarked."""
    random = np.random.default_rng(0)
    y, x = np.mgrid[:40, :48]
    for index in range(4):
        disc = (y - 20) ** 2 + (x - 18 - 4 * index) ** 2 < 13**2
        pixels = np.where(disc[:, :, None], (220, 160, 40), (30, 60, 90)) + random.integers(-9, 10, (40, 48, 3))
        for folder in ("images", "masks"):
            (tmp_path / folder).mkdir(exist_ok=True)
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "images" / f"{index}.png")
        Image.fromarray((disc * 255 * (index < 3)).astype(np.uint8)).save(tmp_path / "masks" / f"{index}.png")
    return find_samples(tmp_path)


def evaluate(samples: list[Sample], *cases: SaliencyCase, journal: Path | None = None, pictures: bool = False,
             **options: Any) -> tuple[Report, Runner]:
    with Runner(journal, **options) as runner:
        return runner.evaluate(Saliency(Path("data"), samples, cases), pictures), runner


def test_figures(tiny: Predictor, samples: list[Sample]) -> None:
    seen: list[tuple[str, int, int]] = []
    report, _ = evaluate(samples, SaliencyCase(tiny, Segment(tau=0.5)), progress=lambda *state: seen.append(state))
    [row] = report.rows
    assert (row.images, row.empty) == (3, 1)
    assert row.iou.value > 0.8
    assert row.accuracy.value > 0.9
    assert row.max_f.value > 0.85
    assert row.iou.low <= row.iou.value <= row.iou.high
    assert set(row.scores) == {"0", "1", "2"}
    assert seen[-1] == ("tiny, tokens", 4, 4)
    assert "| tiny | superpixel | tokens | cut, τ 0.5, border, clean, merged |" in report.markdown()
    own, _ = evaluate(samples, SaliencyCase(tiny, Segment()))
    assert own.rows[0].iou.value > 0.8
    assert "| tiny | superpixel | tokens | cut, own τ, border, clean, merged |" in own.markdown()


def test_both_readings_of_max_f(tiny: Predictor, samples: list[Sample], monkeypatch: pytest.MonkeyPatch) -> None:
    """One map finds its object above .8, the other above .2 only; each has F = 1 at its own threshold."""
    disc = [read_pair(sample)[1].foreground for sample in samples[:2]]
    soft = [np.where(disc[0], 0.9, 0.7), np.where(disc[1], 0.3, 0.1)]
    seen = SaliencyCase(tiny).run([read_pair(sample)[0] for sample in samples[:2]])
    found = replace(seen, saliency=torch.tensor(np.stack(soft)).float(), mask=torch.tensor(np.stack(disc)))
    monkeypatch.setattr(SaliencyCase, "run", lambda self, batch, runner=None: found)
    report, _ = evaluate(samples[:2], SaliencyCase(tiny), batch=2)
    [row] = report.rows
    assert row.max_f_own.value == pytest.approx(1)
    share = disc[0].mean()  # at 0.2 the first map is positive everywhere
    assert row.max_f.value == pytest.approx((1 + 1.3 * share / (1 + 0.3 * share)) / 2, abs=0.02)
    assert "| IoU | accuracy | max F (β² = 0.3) | own maxima | β = 1/3 |" in report.markdown()


def test_resuming(tiny: Predictor, samples: list[Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "images.jsonl"
    cases = [SaliencyCase(tiny), SaliencyCase(tiny, Segment(cut_on="keys"))]
    first, runner = evaluate(samples, *cases, journal=journal)
    assert runner.resumed == 0
    lines = journal.read_text().splitlines()
    assert len(lines) == 8
    assert {"image", "iou", "accuracy", "f", "tokens", "seconds"} <= set(json.loads(lines[0]))
    journal.write_text("\n".join(lines[:3]) + "\n" + lines[3][:20])
    again, runner = evaluate(samples, *cases, journal=journal, batch=3)
    assert runner.resumed == 3
    assert [row.scores for row in again.rows] == [row.scores for row in first.rows]
    assert [row.max_f for row in again.rows] == [row.max_f for row in first.rows]
    monkeypatch.setattr(SaliencyCase, "run", lambda *_: pytest.fail("nothing is left to do"))
    assert [row.iou for row in evaluate(samples, *cases, journal=journal)[0].rows] == [row.iou for row in first.rows]


def test_a_replaced_mask_is_measured_again(tiny: Predictor, samples: list[Sample], tmp_path: Path) -> None:
    """We once replaced masks between two runs, and 84 stale answers stood in the second table."""
    journal = tmp_path / "images.jsonl"
    before, _ = evaluate(samples, SaliencyCase(tiny), journal=journal)
    mask = samples[1].truths[0]
    Image.fromarray(255 - np.asarray(Image.open(mask))).save(mask)
    after, runner = evaluate(find_samples(tmp_path), SaliencyCase(tiny), journal=journal)
    assert (runner.done, runner.resumed) == (4, 3)
    assert before.rows[0].scores["1"] > 0.8
    assert after.rows[0].scores["1"] < 0.3
    assert after.rows[0].scores["0"] == before.rows[0].scores["0"]


def test_images_of_one_size_go_together(tiny: Predictor, samples: list[Sample], tmp_path: Path) -> None:
    for sample in samples[1::2]:
        for path in (sample.image, *sample.truths):
            Image.open(path).resize((56, 48)).save(path)
    evaluate(samples, SaliencyCase(tiny), journal=tmp_path / "images.jsonl", batch=2)
    order = [json.loads(line)["image"] for line in (tmp_path / "images.jsonl").read_text().splitlines()]
    assert order == ["0", "2", "1", "3"]


def test_errors(tiny: Predictor, samples: list[Sample]) -> None:
    with pytest.raises(ValueError, match="some foreground"):
        evaluate(samples[3:], SaliencyCase(tiny))
    with pytest.raises(ValueError, match="a layer from -1 to 0, got 4"):
        SaliencyCase(tiny, Segment(layer=4))
    samples[2].image.write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"2\.png"):
        evaluate(samples, SaliencyCase(tiny), batch=2)


def test_the_baseline_is_on_square_patches(tiny: Predictor) -> None:
    keys, tokens = baseline_cases(tiny, 224)
    assert (keys.name, keys.predictor.model.config.tokenizer) == ("tiny (baseline), keys", "patch")
    assert tokens.question == Segment(method="cut", tau=0.2, foreground="largest", clean=False, merge=False, size=224)


def test_the_page(tiny: Predictor, samples: list[Sample]) -> None:
    report, _ = evaluate(samples, SaliencyCase(tiny), pictures=True)
    assert Image.open(io.BytesIO(report.pictures["page_1_tiny_tokens.png"])).width > 300
