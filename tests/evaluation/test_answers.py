from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from spit.data.crops import central_square
from spit.data.images import load_image
from spit.errors import ImageError
from spit.evaluation.answers import AnswerCase, class_tokens, seeded
from spit.evaluation.runner import Record, Runner
from spit.evaluation.samples import Sample, find_images, spread
from spit.predictor import Predictor

Make = Callable[..., Predictor]


def ask(runner: Runner, model: Predictor, samples: list[Sample], class_tokens: bool = False) -> list[Record]:
    return runner.answers(AnswerCase(model, class_tokens), samples)


@pytest.fixture
def samples(labelled: Path) -> list[Sample]:
    return spread(find_images(labelled), 7)


def test_answers_are_the_models(predictor: Make, samples: list[Sample]) -> None:
    model = predictor(classes=7)
    with Runner(batch=4) as runner:
        said = ask(runner, model, samples, class_tokens=True)
    assert len(said) == 7
    for sample, answer, token in zip(samples, said, class_tokens(said), strict=True):
        with torch.inference_mode():
            alone = model.model(central_square(load_image(sample.image), 32)[None], record=())
        assert answer["top"] == alone.logits[0].topk(5).indices.tolist()
        assert answer["tokens"] == int(alone.partition.counts[0])
        assert torch.allclose(token, alone.class_token[0], atol=1e-5)
        assert answer["seconds"] > 0


def test_without_a_head_there_are_only_class_tokens(predictor: Make, samples: list[Sample]) -> None:
    with Runner(batch=4) as runner:
        said = ask(runner, predictor(classes=0), samples, class_tokens=True)
        assert all(answer["top"] == [] for answer in said)
        assert class_tokens(said).shape == (7, 48)
        assert "class_token" not in ask(runner, predictor(), samples)[0]


def test_a_stopped_run_resumes(predictor: Make, samples: list[Sample], tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    model, journal = predictor(), tmp_path / "images.jsonl"
    with Runner(journal, batch=4) as runner:
        whole = ask(runner, model, samples, class_tokens=True)
    journal.write_bytes(journal.read_bytes()[:-3])  # killed in the middle of the last line
    steps: list[int] = []
    with Runner(journal, lambda _, done, total: steps.append(done), batch=4) as runner:
        again = ask(runner, model, samples, class_tokens=True)
    assert (steps, runner.resumed) == ([6, 7], 6)
    monkeypatch.setattr("spit.evaluation.answers.load_image", None)  # nothing is read again
    with Runner(journal) as runner:
        third = ask(runner, model, samples, class_tokens=True)
    for first, second, last in zip(whole, again, third, strict=True):
        assert first["top"] == second["top"] == last["top"]
    assert torch.allclose(class_tokens(whole), class_tokens(again), atol=1e-5)
    assert torch.equal(class_tokens(again), class_tokens(third))


def test_what_has_changed_is_asked_again(predictor: Make, samples: list[Sample], tmp_path: Path) -> None:
    journal = tmp_path / "images.jsonl"
    first = predictor()
    for model in (first, first, predictor(seed=1), first.with_tokenizer("patch", size=8), predictor(square=40)):
        with Runner(journal) as runner:
            ask(runner, model, samples)
    assert len(journal.read_text().splitlines()) == 4 * 7


def test_a_damaged_image_is_named_and_earlier_answers_stay(predictor: Make, samples: list[Sample],
                                                           tmp_path: Path) -> None:
    bad = tmp_path / "bad.png"
    bad.write_text("no image")
    with Runner(tmp_path / "images.jsonl", batch=4) as runner, pytest.raises(ImageError, match=r"bad\.png"):
        ask(runner, predictor(), [*samples[:5], Sample("bad.png", bad)])
    assert len((tmp_path / "images.jsonl").read_text().splitlines()) == 4


def test_random_tokens_are_drawn_five_times(predictor: Make) -> None:
    runs = seeded(predictor("voronoi", cells=9))
    assert [run.model.config.tokenizer_options for run in runs] == [{"cells": 9, "seed": seed} for seed in range(5)]
    assert len({run.digest for run in runs}) == 1
    assert len(seeded(predictor("patch"))) == len(seeded(predictor())) == 1
