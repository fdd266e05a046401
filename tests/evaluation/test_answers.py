from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from spit.data.crops import central_square
from spit.data.images import load_image
from spit.errors import ImageError
from spit.evaluation import answers
from spit.evaluation.answers import Examiner, Setup, Subject
from spit.evaluation.labelled import LabelledFolder, labelled_folder

Make = Callable[..., Subject]
SETUP = Setup(size=32, batch=4)


@pytest.fixture
def folder(labelled: Path) -> LabelledFolder:
    return labelled_folder(labelled).spread(7)


def test_answers_are_the_models(subject: Make, folder: LabelledFolder) -> None:
    model = subject(classes=7)
    with Examiner(SETUP) as examiner:
        said = examiner.ask(model, folder, class_tokens=True)
    assert len(said) == 7
    for image, answer in zip(folder.images, said, strict=True):
        with torch.inference_mode():
            alone = model.model(central_square(load_image(image.path), 32)[None], record=())
        assert list(answer.top) == alone.logits[0].topk(5).indices.tolist()
        assert answer.tokens == int(alone.partition.counts[0])
        assert torch.allclose(answer.class_token, alone.class_token[0], atol=1e-5)
        assert answer.seconds > 0


def test_without_a_head_there_are_class_tokens_alone(subject: Make, folder: LabelledFolder) -> None:
    with Examiner(SETUP) as examiner:
        said = examiner.ask(subject(classes=0), folder, class_tokens=True)
        assert all(answer.top == () and answer.class_token.shape == (48,) for answer in said)
        assert examiner.ask(subject(), folder)[0].class_token is None


def test_a_stopped_run_goes_on(subject: Make, folder: LabelledFolder, tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    model, journal = subject(), tmp_path / "images.jsonl"
    with Examiner(SETUP, journal) as examiner:
        whole = examiner.ask(model, folder, class_tokens=True)
    journal.write_bytes(journal.read_bytes()[:-3])  # killed in the middle of the last line
    steps: list[tuple[int, int]] = []
    with Examiner(SETUP, journal, lambda _, done, total: steps.append((done, total))) as examiner:
        examiner.expect(7)
        again = examiner.ask(model, folder, class_tokens=True)
    assert steps == [(6, 7), (7, 7)]
    monkeypatch.setattr(answers, "_square", None)  # nothing is read again
    with Examiner(SETUP, journal) as examiner:
        third = examiner.ask(model, folder, class_tokens=True)
    for first, second, last in zip(whole, again, third, strict=True):
        assert first.top == second.top == last.top
        assert torch.allclose(first.class_token, second.class_token, atol=1e-5)
        assert torch.equal(second.class_token, last.class_token)


def test_what_has_changed_is_asked_again(subject: Make, folder: LabelledFolder, tmp_path: Path) -> None:
    journal = tmp_path / "images.jsonl"
    first = subject()
    other = subject(seed=1)
    assert first.digest != other.digest
    for model, setup in ((first, SETUP), (first, SETUP), (other, SETUP), (first.with_tokenizer("patch", size=8), SETUP),
                         (first, Setup(size=40, batch=4))):
        with Examiner(setup, journal) as examiner:
            examiner.ask(model, folder)
    assert len(journal.read_text().splitlines()) == 4 * 7


def test_a_damaged_image_is_named_and_earlier_answers_stay(subject: Make, labelled: Path, tmp_path: Path) -> None:
    folder = labelled_folder(labelled).spread(6)
    bad = tmp_path / "bad.png"
    bad.write_text("no image")
    images = (*folder.images[:5], type(folder.images[0])(bad, "bad.png", 0))
    with Examiner(SETUP, tmp_path / "images.jsonl") as examiner, pytest.raises(ImageError, match=r"bad\.png"):
        examiner.ask(subject(), LabelledFolder(folder.root, folder.classes, images))
    assert len((tmp_path / "images.jsonl").read_text().splitlines()) == 4


def test_random_tokens_are_drawn_five_times(subject: Make) -> None:
    runs = subject("voronoi", cells=9).runs
    assert [run.model.config.tokenizer_options for run in runs] == [{"cells": 9, "seed": seed} for seed in range(5)]
    assert len({run.digest for run in runs}) == 1
    assert len(subject("patch").runs) == len(subject().runs) == 1


def test_reading_ahead_changes_nothing(folder: LabelledFolder) -> None:
    plain, ahead = (list(answers.batches(folder.images, Setup(32, 2, torch.device(kind)))) for kind in ("cpu", "cuda"))
    assert [[image.name for image in images] for images, _ in ahead] == [[image.name for image in images]
                                                                        for images, _ in plain]
    assert all(torch.equal(a[1], b[1]) for a, b in zip(plain, ahead, strict=True))
    assert [len(images) for images, _ in plain] == [2, 2, 2, 1]


def test_an_unknown_precision() -> None:
    with pytest.raises(ValueError, match="fp32, bf16, got 'fp8'"):
        Setup(precision="fp8")
    with pytest.raises(ValueError, match="use fp32 on a CPU"):
        Setup(precision="bf16")
    assert Setup(device=torch.device("cuda"), precision="bf16").precision == "bf16"
