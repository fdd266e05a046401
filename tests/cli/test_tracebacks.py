"""Errors of a user's own tokenizer: one line on the command line, the exception itself in Python."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import spit as library
from spit.cli import main

pytestmark = pytest.mark.usefixtures("restored_parts")


@dataclass(frozen=True)
class Grid(library.Tokenizer):
    cell: int = 0
    refuse: bool = False

    def partition(self, block: Tensor) -> library.Partition:
        if self.refuse:
            raise ValueError("too\nsmall")
        return library.PatchTokenizer(block.shape[2] // self.cell)(block)


@dataclass(frozen=True)
class Refusing(Grid):
    refuse: bool = True


@pytest.fixture(autouse=True)
def registered(restored_parts: None) -> None:
    library.register_tokenizer("grid", Grid)
    library.register_tokenizer("refusing", Refusing)


@pytest.mark.parametrize("verb", ["tokenize", "classify"])
def test_the_line_names_the_tokenizer_and_the_error(verb: str, spit: Callable[..., Any], photo: Callable[..., Path],
                                                    save_tiny: Callable[..., Path], tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    command = [verb, photo(tmp_path / "a.png"), "--tokenizer", "grid", "--model", save_tiny(num_classes=2),
               *(["-o", tmp_path / "out"] if verb == "tokenize" else [])]
    assert spit(*command).error.startswith(
        "spit: your tokenizer 'grid' raised ZeroDivisionError: integer division or modulo by zero; SPIT_TRACEBACK=1 ")
    monkeypatch.setenv("SPIT_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        main([str(part) for part in command])


@pytest.mark.parametrize("verb", ["tokenize", "classify"])
@pytest.mark.parametrize(("answer", "told"), [
    ("None", "TypeError: expected a spit.Partition, got NoneType"),
    ("Partition.from_labels(block[:, 0, :, ::2].long())", "ValueError: expected labels of ")])
def test_an_answer_that_is_no_partition_of_the_image(
        answer: str, told: str, verb: str, spit: Callable[..., Any], photo: Callable[..., Path],
        save_tiny: Callable[..., Path], tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Wrong(library.Tokenizer):
        def partition(self, block: Tensor) -> Any:
            return eval(answer, {"Partition": library.Partition, "block": block * 0})

    library.register_tokenizer("wrong", Wrong)
    command = [verb, photo(tmp_path / "a.png"), "--tokenizer", "wrong", "--model", save_tiny(num_classes=2),
               *(["-o", tmp_path / "out"] if verb == "tokenize" else [])]
    line = spit(*command).error
    assert f"your tokenizer 'wrong' raised {told}" in line
    assert "; the tokenizer Wrong returned it; " in line


def test_of_several_images_each_is_told(spit: Callable[..., Any], photo: Callable[..., Path], tmp_path: Path,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [photo(tmp_path / f"{name}.png") for name in "ab"]
    command = ["tokenize", *paths, "--tokenizer", "refusing", "-o", tmp_path / "out"]
    lines = spit(*command).err.splitlines()
    assert lines[0].startswith(f"spit: {paths[0]}: your tokenizer 'refusing' raised ValueError: too small; ")
    assert lines[2] == "spit: 2 of 2 images failed"
    monkeypatch.setenv("SPIT_TRACEBACK", "1")
    with pytest.raises(ValueError, match="too\nsmall"):
        main([str(part) for part in command])


def test_a_refused_option_and_an_error_of_ours_are_told_as_they_are(spit: Callable[..., Any], tmp_path: Path,
                                                                    photo: Callable[..., Path]) -> None:
    path = photo(tmp_path / "a.png")
    model = library.create_model("vit_tiny_16", num_classes=2, depth=1)
    with pytest.raises(TypeError, match=r"^expected cell to be a whole number, got 'a'$"):
        model.with_tokenizer("grid", cell="a")
    with pytest.raises(ZeroDivisionError):  # in Python, the tokenizer's own
        library.create_tokenizer("grid")(library.load_image(path))
    assert spit("tokenize", path, "--levels", 0).error == "spit: expected --levels of at least 1, got 0\n"
