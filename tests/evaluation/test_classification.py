from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spit.errors import ImageError
from spit.evaluation.answers import Answer, Examiner, Setup, Subject
from spit.evaluation.classification import Head, Result, evaluate, sheet
from spit.evaluation.intervals import wilson
from spit.evaluation.labelled import LabelledFolder, LabelledImage, labelled_folder

Make = Callable[..., Subject]
SETUP = Setup(size=32, batch=8)


def result(*ranked: list[tuple[int, ...]], truth: list[int], classes: int = 10) -> Result:
    answers = [[Answer(best, tokens=4 + index, seconds=0.5) for index, best in enumerate(run)] for run in ranked]
    return Result(list(ranked), truth, classes, answers, [])


def test_figures_by_hand() -> None:
    made = result([(1, 2, 3, 4, 5), (2, 1, 3, 4, 5), (9, 8, 7, 6, 5), (1, 2, 3, 4, 5)], truth=[1, 1, 1, 4])
    assert made.right() == [[1, 0, 0, 0]]
    assert made.right(5) == [[1, 1, 0, 1]]
    top5 = made.accuracy(5)
    assert (top5.value, top5.low, top5.high) == (0.75, *wilson(3, 4))
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


def test_a_model_that_is_always_right(subject: Make, labelled: Path) -> None:
    """Its answers, taken for the truth: every figure is 1."""
    folder, model = labelled_folder(labelled).spread(6), subject(classes=9)
    with Examiner(SETUP) as examiner:
        tops = [answer.top for answer in examiner.ask(model, folder)]
        classes = tuple(f"{index:04d}" for index in range(8))
        swapped = LabelledFolder(folder.root, classes, tuple(
            LabelledImage(image.path, image.name, min(top[0], 7)) for image, top in zip(folder.images, tops,
                                                                                      strict=True)))
        [row] = evaluate(examiner, [model], swapped, real=[frozenset(top[:1]) for top in tops])
    wrong = sum(top[0] == 8 for top in tops)
    assert row.top1.value == pytest.approx(1 - wrong / 6)
    assert (row.real.value, row.images, row.runs, row.head) == (1, 6, 1, "logits")
    assert row.top5.value >= row.top1.value
    assert row.model in sheet([row], "about").markdown()


def test_random_tokens_have_a_spread(subject: Make, labelled: Path) -> None:
    with Examiner(SETUP) as examiner:
        voronoi, patch = evaluate(examiner, [subject("voronoi", cells=6), subject("patch", size=8)],
                                  labelled_folder(labelled).spread(6))
    assert (voronoi.runs, voronoi.tokens) == (5, 6)
    assert voronoi.top1.spread is not None
    assert (patch.runs, patch.top1.spread, patch.tokens) == (1, None, 16)


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
def test_heads_learn_from_class_tokens(kind: str, subject: Make, colours: Path) -> None:
    """Even random weights tell colours apart."""
    train, test = labelled_folder(colours).split(3)
    with Examiner(SETUP) as examiner:
        [row] = evaluate(examiner, [subject(classes=0)], test, Head(kind, train, neighbors=3))
        [known] = evaluate(examiner, [subject(classes=0)], train, Head(kind, train, neighbors=1))
    assert row.top1.value == 1
    assert known.top1.value == 1  # an image is its own neighbour, and nine points in 48 dimensions are separable
    assert (row.images, row.top5, row.head) == (9, None, kind)
    assert len(row.penalties) == (kind == "linear")


def test_real_labels_of_a_fitted_head(subject: Make, labelled: Path) -> None:
    """Places among the training folder's classes become ImageNet's indices."""
    plain = labelled_folder(labelled)
    named = LabelledFolder(plain.root, ("0003", "0007", "0999"), plain.images)
    real = [frozenset({(3, 7, 999)[image.label]}) for image in plain.images]
    with Examiner(SETUP) as examiner:
        [row] = evaluate(examiner, [subject()], named, Head("knn", named, neighbors=1), real)
        assert row.real.value == row.top1.value == 1
        with pytest.raises(ImageError, match="1000 classes"):
            evaluate(examiner, [subject()], plain, Head("knn", plain), real)


def test_what_cannot_work_is_told_first(subject: Make, labelled: Path) -> None:
    folder = labelled_folder(labelled)
    with (Examiner(SETUP, None, lambda *_: pytest.fail("asked")) as examiner,
          pytest.raises(ImageError, match="for a model of 4 classes; got 3")):
        evaluate(examiner, [subject(), subject(classes=4)], folder)
    for kind, train in (("logits", folder), ("knn", None)):
        with pytest.raises(ValueError, match="learn from training images"):
            Head(kind, train)
    with pytest.raises(ValueError, match="logits, knn, linear, got 'svm'"):
        Head("svm")


@pytest.mark.shared
def test_the_parent_on_imagenet(shared_folder: Callable[[str], Path]) -> None:
    """100 of the 1,000 images; DeiT-Tiny's published accuracy is .722, and .702 on all of these."""
    import spit

    weights = shared_folder("weights") / "deit_tiny_patch16_224.safetensors"
    folder = labelled_folder(shared_folder("data/imagenet_val1k")).spread(100)
    with Examiner(Setup(batch=8)) as examiner:
        [row] = evaluate(examiner, [Subject.of("deit", spit.from_timm(weights))], folder)
    assert row.top1.low < 0.722 < row.top1.high
    assert row.top5.value > 0.8
    assert row.tokens == 196
