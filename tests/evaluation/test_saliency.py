"""Contenders over folders: figures, resumption, pages."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from spit.config import ModelConfig
from spit.errors import ImageError
from spit.evaluation.answers import Subject
from spit.evaluation.saliency import Contender, evaluate, sheet
from spit.evaluation.saliency_data import Sample, Truth, find_samples
from spit.evaluation.saliency_page import FALSE_NEGATIVE, FALSE_POSITIVE, TRUE_POSITIVE, choose, draw_errors, draw_page
from spit.model import SpitModel
from spit.segmentation import Cut


@pytest.fixture(scope="module")
def subject() -> Subject:
    torch.manual_seed(0)
    return Subject.of("tiny", SpitModel(ModelConfig(
        tokenizer_options={"levels": 2}, resolution=4, position_bins=4, gradients=False, width=32, depth=1, heads=2,
        layer_scale=None, num_classes=2)).eval())


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


def test_figures(subject: Subject, samples: list[Sample]) -> None:
    seen: list[tuple[str, int, int]] = []
    [row] = evaluate([Contender(subject, Cut(tau=0.5, foreground="border"))], samples,
                     progress=lambda *state: seen.append(state))
    assert (row.images, row.empty) == (3, 1)
    assert row.iou.value > 0.8
    assert row.accuracy.value > 0.9
    assert row.max_f.value > 0.85
    assert row.iou.low <= row.iou.value <= row.iou.high
    assert set(row.scores) == {"0", "1", "2"}
    assert seen[-1] == ("tiny, tokens", 4, 4)
    text = sheet([row], "Four images.").markdown()
    assert "| tiny | superpixel | tokens | τ 0.5, border |" in text
    [own] = evaluate([Contender(subject, Cut())], samples)
    assert own.iou.value > 0.8
    assert "| tiny | superpixel | tokens | own τ, border |" in sheet([own], "").markdown()


def test_going_on(subject: Subject, samples: list[Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = tmp_path / "images.jsonl"
    contenders = [Contender(subject, Cut()), Contender(subject, Cut(features="keys"))]
    rows = evaluate(contenders, samples, journal)
    lines = journal.read_text().splitlines()
    assert len(lines) == 8
    assert {"image", "iou", "accuracy", "f", "tokens", "seconds"} <= set(json.loads(lines[0]))
    journal.write_text("\n".join(lines[:3]) + "\n" + lines[3][:20])
    again = evaluate(contenders, samples, journal, batch=3)
    assert [row.scores for row in again] == [row.scores for row in rows]
    assert [row.max_f for row in again] == [row.max_f for row in rows]
    monkeypatch.setattr("spit.evaluation.saliency._records", lambda *_: pytest.fail("nothing is left to do"))
    assert [row.iou for row in evaluate(contenders, samples, journal)] == [row.iou for row in rows]


def test_images_of_one_size_go_together(subject: Subject, samples: list[Sample], tmp_path: Path) -> None:
    for sample in samples[1::2]:
        for path in (sample.image, sample.mask):
            Image.open(path).resize((56, 48)).save(path)
    evaluate([Contender(subject, Cut())], samples, tmp_path / "images.jsonl", batch=2)
    order = [json.loads(line)["image"] for line in (tmp_path / "images.jsonl").read_text().splitlines()]
    assert order == ["0", "2", "1", "3"]


def test_a_damaged_image_among_others(subject: Subject, samples: list[Sample]) -> None:
    samples[2].image.write_bytes(b"no image")
    assert [sample.size() for sample in samples[1:3]] == [(48, 40), (0, 0)]
    with pytest.raises(ImageError, match=r"2\.png"):
        evaluate([Contender(subject, Cut())], samples, batch=2)


def test_no_foreground_anywhere(subject: Subject, samples: list[Sample]) -> None:
    with pytest.raises(ValueError, match="some foreground"):
        evaluate([Contender(subject, Cut())], samples[3:])


def test_the_page(subject: Subject, samples: list[Sample]) -> None:
    contender = Contender(subject, Cut())
    [row] = evaluate([contender], samples)
    assert draw_page(contender, row, samples).width > 300


def test_who_is_on_the_page() -> None:
    scores = {f"{index}": index / 10 for index in range(10)}
    chosen = choose(scores, across=2)
    assert {kind: [name for name, _ in row] for kind, row in chosen.items()} == {
        "best": ["9", "8"], "median": ["5", "4"], "worst": ["1", "0"]}
    assert choose({"b": 0.5, "a": 0.5}) == {"best": [("a", 0.5), ("b", 0.5)]}


def test_the_three_colours() -> None:
    mask = np.array([[True, True, False, False, True]])
    truth = Truth(np.array([[True, False, True, False, True]]), np.array([[True, True, True, True, False]]))
    pixels = np.asarray(draw_errors(torch.zeros(3, 1, 5, dtype=torch.uint8), mask, truth))
    for place, color in enumerate((TRUE_POSITIVE, FALSE_POSITIVE, FALSE_NEGATIVE)):
        assert pixels[0, place].tolist() == [round(0.7 * value) for value in color]
    assert pixels[0, 3].tolist() == pixels[0, 4].tolist() == [0, 0, 0]
