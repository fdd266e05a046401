import json
from pathlib import Path

import pytest

from spit.data.classes import wordnet_ids
from spit.errors import ImageError
from spit.evaluation.samples import (
    LabelledFolder,
    Sample,
    class_indices,
    find_images,
    labelled_folder,
    read_real,
    spread,
)


def test_a_key_is_the_content(tmp_path: Path) -> None:
    image, same, mask = (tmp_path / name for name in ("a.png", "b.jpg", "m.png"))
    image.write_bytes(b"pixels")
    same.write_bytes(b"pixels")
    mask.write_bytes(b"mask")
    key = Sample("a", image, (mask,)).key
    assert Sample("b", same, (mask,), label=3).key == key
    assert Sample("a", image).key != key
    mask.write_bytes(b"another")
    assert Sample("a", image, (mask,)).key != key
    assert Sample("a", image, (mask, image)).key != Sample("a", mask, (image, image)).key


def test_images_at_any_depth(labelled: Path, tmp_path: Path) -> None:
    found = find_images(labelled)
    assert len(found) == 18
    assert (found[0].name, found[0].size()) == ("astronaut/0.png", (48, 40))
    with pytest.raises(ImageError, match="nowhere"):
        find_images(tmp_path / "nowhere")
    (tmp_path / "bad.png").write_bytes(b"no image")
    assert Sample("bad", tmp_path / "bad.png").size() == (0, 0)


def test_spread() -> None:
    assert spread(range(10), 3) == [0, 3, 6]
    assert spread("abc", None) == spread("abc", 7) == ["a", "b", "c"]


def folder(*classes: str, images: int = 1, root: str = "data") -> LabelledFolder:
    return LabelledFolder(Path(root), classes, tuple(
        Sample(f"{name}/{index}.png", Path(root, name, f"{index}.png"), label=label)
        for label, name in enumerate(classes) for index in range(images)))


def test_sub_folders_are_classes_in_sorted_order(labelled: Path) -> None:
    found = labelled_folder(labelled)
    assert found.classes == ("astronaut", "chelsea", "coffee")
    assert len(found.images) == 18
    assert [image.name for image in found.images] == sorted(image.name for image in found.images)
    assert all(found.classes[image.label] == image.image.parent.name for image in found.images)


def test_what_is_no_labelled_folder(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="expected a folder"):
        labelled_folder(tmp_path / "none")
    (tmp_path / "beside.png").write_bytes(b"")
    with pytest.raises(ImageError, match=r"beside\.png: expected images in .* outside of any class"):
        labelled_folder(tmp_path)


def test_a_limit_is_spread_over_the_classes() -> None:
    whole = folder("a", "b", "c", images=4)
    assert whole.spread(3).labels == [0, 1, 2]
    assert whole.spread(3).classes == whole.classes
    assert whole.spread(None) == whole.spread(12) == whole


def test_a_split_takes_as_many_of_each_class_and_leaves_the_rest() -> None:
    whole = folder("a", "b", images=7)
    train, test = whole.split(3)
    assert [train.labels.count(label) for label in (0, 1)] == [3, 3]
    assert sorted(image.name for image in train.images + test.images) == [image.name for image in whole.images]
    assert whole.split(3) == (train, test)
    assert whole.split(3, seed=1) != (train, test)
    with pytest.raises(ImageError, match="more than 7 images"):
        whole.split(7)


def test_the_classes_of_another_folder() -> None:
    moved = folder("b", "d").with_classes(["a", "b", "c", "d"])
    assert moved.labels == [1, 3]
    with pytest.raises(ImageError, match="got 'e' and 1 more"):
        folder("a", "e", "f").with_classes(["a"])


def test_classes_to_logits() -> None:
    assert class_indices(folder("cat", "dog"), 2) == [0, 1]
    assert class_indices(folder("0003", "0007"), 1000) == [3, 7]
    assert class_indices(folder("n01443537", "n01440764"), 1000) == [1, 0]
    own = ("cat", "mug", "goldfish")
    assert class_indices(folder(*own), 3, own) == [0, 1, 2]
    assert class_indices(folder("mug"), 3, own) == [1]
    assert class_indices(folder("mug", "n01443537", "cat"), 3, own) == [1, 2, 0]
    assert class_indices(folder("0", "2"), 3, own) == [0, 2]
    with pytest.raises(ImageError, match=r"the model knows \(cat, mug, goldfish\), got 'dog'"):
        class_indices(folder("cat", "dog", "mug"), 3, own)
    assert len(wordnet_ids()) == 1000
    for classes, logits in ((("cat", "dog"), 1000), (("0003", "1000"), 1000), (("n01443537",), 10)):
        with pytest.raises(ImageError, match=f"a model of {logits} classes"):
            class_indices(folder(*classes), logits)


def test_folders_named_by_numbers() -> None:
    """A model without names has them as indices, complete or not; one that was trained on them knows them by name."""
    names = sorted(map(str, range(12)))
    assert class_indices(folder(*names), 12) == [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]
    assert class_indices(folder("1", "10", "2"), 12) == [1, 10, 2]
    assert class_indices(folder(*names), 12, names) == list(range(12))
    assert class_indices(folder("1", "10", "2"), 12, names) == [1, 2, 4]
    assert class_indices(folder(*names), 12, tuple("abcdefghijkl")) == [0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9]
    assert class_indices(folder("1", "2", "3"), 3) == [0, 1, 2], "beyond the logits: in sorted order"


def test_real_labels(tmp_path: Path) -> None:
    path, images = tmp_path / "real.json", folder("0000", "0001")
    path.write_text(json.dumps({"0000/0.png": [0, 5], "0001/0.png": []}))
    assert read_real(path, images) == [{0, 5}, set()]
    path.write_text(json.dumps({"0000/0.png": [0]}))
    with pytest.raises(ImageError, match=r"for 0001/0\.png, found none"):
        read_real(path, images)
    path.write_text("{")
    with pytest.raises(ImageError, match="expected a JSON file"):
        read_real(path, images)


def test_the_published_list_of_real_labels(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("[[3], [], [4, 5]]")
    names = [f"x/ILSVRC2012_val_0000000{number}.JPEG" for number in (3, 2, 4)]
    images = [Sample(name, Path(name)) for name in names]
    two = LabelledFolder(Path(), ("x",), tuple(images[:2]))
    assert read_real(tmp_path / "real.json", two) == [{4, 5}, set()]
    with pytest.raises(ImageError, match="00000004"):
        read_real(tmp_path / "real.json", LabelledFolder(Path(), ("x",), tuple(images)))
