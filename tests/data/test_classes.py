from importlib.resources import files

import pytest

from spit.config import ModelConfig
from spit.data.classes import class_names, folder_names, imagenet_classes, near_names


def test_a_thousand_names() -> None:
    names = imagenet_classes()
    assert len(names) == 1000
    assert all(name and name == name.strip() and name.isprintable() for name in names)


def test_no_two_share_a_name() -> None:
    assert len(set(imagenet_classes())) == 1000
    assert imagenet_classes()[134] == "crane (bird)"


@pytest.mark.parametrize(
    ("index", "name"),
    [(0, "tench"), (1, "goldfish"), (2, "great white shark"), (281, "tabby"), (999, "toilet tissue")],
)
def test_names_stand_at_the_index_of_the_logits(index: int, name: str) -> None:
    assert imagenet_classes()[index].split(",")[0] == name


def test_rows_are_in_the_order_of_their_index_and_wordnet_id() -> None:
    table = files("spit.data").joinpath("imagenet_classes.tsv").read_text("utf-8")
    rows = [row.split("\t") for row in table.splitlines()]
    assert [int(index) for index, _, _ in rows] == list(range(1000))
    ids = [wordnet for _, wordnet, _ in rows]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize(("config", "names"), [
    (ModelConfig(num_classes=2), ("class 0", "class 1")),
    (ModelConfig(num_classes=2, class_names=("cat", "a\x1b[31m")), ("cat", r"'a\x1b[31m'")),
    (ModelConfig(), imagenet_classes()),
    (ModelConfig(class_names=("cat",) * 1000), ("cat",) * 1000),
    (ModelConfig(num_classes=0), ()),
])
def test_the_classes_of_a_model(config: ModelConfig, names: tuple[str, ...]) -> None:
    assert class_names(config) == names


@pytest.mark.parametrize(("folders", "names"), [
    (["cat", "dog"], ("cat", "dog")),
    (["n01440764", "n02123045", "none"], ("tench", "tabby", "none")),
    (["1", "10", "2"], ("1", "10", "2")),
    (["000", "001", "002"], ()),
])
def test_folders_name_classes(folders: list[str], names: tuple[str, ...]) -> None:
    assert folder_names(folders) == names


@pytest.mark.parametrize(("word", "near"), [
    ("espreso", ["espresso"]),
    ("CAT", ["tiger cat", "Persian cat", "Siamese cat", "Egyptian cat"]),
    ("kitty", []),
    ("goldfich", ["goldfinch", "goldfish"]),
    ("labrador", ["Labrador retriever"]),
    ("tabby cat", ["tabby", "lab coat"]),
    ("teapt", ["teapot"]),
    ("bicycle", ["bicycle-built-for-two", "unicycle", "tricycle"]),
    ("zzzz", []),
])
def test_names_like_a_word(word: str, near: list[str]) -> None:
    assert near_names(imagenet_classes(), word) == near
