import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from spit.data.crops import central_square
from spit.data.images import load_image
from spit.errors import ImageError
from spit.evaluation.classification import AnswerCase, Classification, Head, Result, class_tokens
from spit.evaluation.options import Tokenizers
from spit.evaluation.runner import Record, Runner
from spit.evaluation.samples import LabelledFolder, Sample, find_images, labelled_folder, spread
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
    monkeypatch.setattr("spit.evaluation.classification.load_image", None)  # nothing is read again
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


def result(*ranked: list[tuple[int, ...]], truth: list[int], classes: int = 10) -> Result:
    answers = [[{"top": best, "tokens": 4 + index, "seconds": 0.5} for index, best in enumerate(run)] for run in ranked]
    return Result(list(ranked), truth, classes, answers, [])


def test_figures_by_hand() -> None:
    made = result([(1, 2, 3, 4, 5), (2, 1, 3, 4, 5), (9, 8, 7, 6, 5), (1, 2, 3, 4, 5)], truth=[1, 1, 1, 4])
    assert made.right() == [[1, 0, 0, 0]]
    assert made.right(5) == [[1, 1, 0, 1]]
    top5 = made.accuracy(5)
    assert (top5.value, top5.images) == (0.75, 4)
    assert made.class_accuracy() == pytest.approx((1 / 3 + 0) / 2)
    assert (made.tokens, made.images_per_second) == (5.5, 2)


def test_five_of_five_classes_is_no_figure() -> None:
    assert result([(0, 1, 2, 3, 4)], truth=[3], classes=5).accuracy(5) is None


def test_real_leaves_out_images_without_a_label() -> None:
    made = result([(1,), (2,), (3,), (4,)], [(1,), (2,), (0,), (4,)], truth=[1, 2, 3, 4])
    real = made.real_accuracy([frozenset({7, 1}), frozenset(), frozenset({3}), frozenset({5})])
    assert (real.value, real.images) == (pytest.approx((2 / 3 + 1 / 3) / 2), 3)
    assert real.spread == pytest.approx(((1 / 3) ** 2 / 2) ** 0.5)
    assert made.real_accuracy([frozenset()] * 4) is None


def test_a_model_that_is_always_right(predictor: Make, labelled: Path) -> None:
    """Its answers, taken for the truth: every figure is 1."""
    folder, model = labelled_folder(labelled).spread(6), predictor(classes=9)
    with Runner() as runner:
        tops = [answer["top"] for answer in runner.answers(AnswerCase(model), folder.images)]
        classes = tuple(f"{index:04d}" for index in range(8))
        swapped = LabelledFolder(folder.root, classes, tuple(
            replace(image, label=min(top[0], 7)) for image, top in zip(folder.images, tops, strict=True)))
        protocol = Classification([model], swapped, real=[frozenset(top[:1]) for top in tops])
        report = runner.evaluate(protocol)
    [row] = report.rows
    wrong = sum(top[0] == 8 for top in tops)
    assert row.top1.value == pytest.approx(1 - wrong / 6)
    assert (row.real.value, row.images, row.runs, row.head) == (1, 6, 1, "logits")
    assert row.top5.value >= row.top1.value
    assert row.model in report.markdown()
    assert (report.document()["size"], report.document()["precision"]) == (32, "fp32")


def test_random_tokens_have_a_spread(predictor: Make, labelled: Path) -> None:
    with Runner() as runner:
        voronoi, patch = runner.rows(Classification([predictor("voronoi", cells=6), predictor("patch", size=8)],
                                                    labelled_folder(labelled).spread(6)))
    assert (voronoi.runs, voronoi.tokens) == (5, 6)
    assert voronoi.top1.spread is not None
    assert (patch.runs, patch.top1.spread, patch.tokens) == (1, None, 16)


@pytest.mark.parametrize("head", ["logits", "knn"])
def test_a_row_for_each_model_and_tokenizer(head: str, predictor: Make, labelled: Path) -> None:
    """Each as that tokenizer alone answers."""
    test = labelled_folder(labelled).spread(6)
    train = None if head == "logits" else labelled_folder(labelled)
    models, asked = [predictor("patch", size=8), predictor(seed=1)], Tokenizers(("patch,size=16", "voronoi,cells=9"))
    steps: list[tuple[int, int]] = []
    with Runner(None, lambda _, done, total: steps.append((done, total))) as runner:
        report = runner.evaluate(Classification(models, test, Head(head=head), train, tokenizers=asked))
        assert steps[-1] == ((72, 72) if train is None else (288, 288))  # 2 models, 6 runs, 6 images, 18 to learn from
        alone = runner.rows(Classification([model.with_tokenizer("patch", size=16) for model in models], test,
                                           Head(head=head), train))
    rows = report.rows
    assert [(row.model, row.tokenizer, row.runs) for row in rows] == [
        (model.name, tokenizer, runs) for model in models for tokenizer, runs in (("patch,size=16", 1),
                                                                                  ("voronoi,cells=9", 5))]
    assert [row.top1 for row in rows[::2]] == [row.top1 for row in alone]
    assert [row.tokens for row in rows] == [4, 9, 4, 9]
    assert "seeds 0 to 4" in report.notes
    assert "equal_counts" not in report.document()


@pytest.fixture
def colours(tmp_path: Path) -> Path:
    """Three classes of six images, each of one colour with a little noise."""
    random = np.random.default_rng(0)
    for name, colour in (("blue", (40, 60, 200)), ("green", (40, 200, 60)), ("red", (200, 40, 60))):
        (tmp_path / name).mkdir()
        for index in range(6):
            pixels = colour + random.integers(-8, 9, (36, 36, 3))
            Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / name / f"{index}.png")
    return tmp_path


@pytest.mark.parametrize("kind", ["knn", "linear"])
def test_heads_learn_from_class_tokens(kind: str, predictor: Make, colours: Path) -> None:
    """Even random weights tell colours apart."""
    train, test = labelled_folder(colours).split(3)
    with Runner() as runner:
        [row] = runner.rows(Classification([predictor(classes=0)], test, Head(head=kind, neighbors=3), train))
        [known] = runner.rows(Classification([predictor(classes=0)], train, Head(head=kind, neighbors=1), train))
    assert row.top1.value == 1
    assert known.top1.value == 1  # an image is its own neighbour, and nine points in 48 dimensions are separable
    assert (row.images, row.top5, row.head) == (9, None, kind)
    assert len(row.penalties) == (kind == "linear")


def test_real_labels_of_a_fitted_head(predictor: Make, labelled: Path) -> None:
    """Indices into the training folder's classes become ImageNet's."""
    plain = labelled_folder(labelled)
    named = LabelledFolder(plain.root, ("0003", "0007", "0999"), plain.images)
    real = [frozenset({(3, 7, 999)[image.label]}) for image in plain.images]
    with Runner() as runner:
        [row] = runner.rows(Classification([predictor()], named, Head(head="knn", neighbors=1), named, real))
    assert row.real.value == row.top1.value == 1
    with pytest.raises(ImageError, match="1000 classes"):
        Classification([predictor()], plain, Head(head="knn"), plain, real)


def test_impossible_requests_are_refused_first(predictor: Make, labelled: Path) -> None:
    folder = labelled_folder(labelled)
    with pytest.raises(ImageError, match="for a model of 4 classes; got 3"):
        Classification([predictor(), predictor(classes=4)], folder)
    for kind, train in (("logits", folder), ("knn", None)):
        with pytest.raises(ValueError, match="learn from training images"):
            Classification([predictor()], folder, Head(head=kind), train)
    with pytest.raises(ValueError, match="logits, knn, linear, got 'svm'"):
        Head(head="svm")


@pytest.mark.shared
def test_the_parent_on_imagenet(shared_folder: Callable[[str], Path]) -> None:
    """100 of the 1,000 images; DeiT-Tiny's published accuracy is .722, and .702 on all of these."""
    import spit

    weights = shared_folder("weights") / "deit_tiny_patch16_224.safetensors"
    folder = labelled_folder(shared_folder("data/imagenet_val1k")).spread(100)
    with Runner(batch=8) as runner:
        [row] = runner.rows(Classification([spit.load(weights, "cpu")], folder))
    assert row.top1.low < 0.722 < row.top1.high
    assert row.top5.value > 0.8
    assert row.tokens == 196


def test_parts_of_a_data_set_are_no_classes(labelled: Path, tmp_path: Path) -> None:
    for part in ("train", "test"):
        shutil.copytree(labelled, tmp_path / "set" / part)
    with pytest.raises(ImageError, match=r"got the folder of test and train; give .*set/test"):
        labelled_folder(tmp_path / "set")
