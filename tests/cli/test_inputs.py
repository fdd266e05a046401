from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spit.cli.inputs import Input, find_inputs
from spit.cli.options import Output
from spit.errors import ImageError


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def stems(inputs: list[Input]) -> list[str]:
    return [item.stem.as_posix() for item in inputs]


def test_a_folder_keeps_its_structure(tmp_path: Path) -> None:
    touch(tmp_path, "in/a/cat.jpg", "in/b/cat.jpg", "in/dog.png")
    assert stems(find_inputs([tmp_path / "in"], tmp_path / "out")) == ["a/cat", "b/cat", "dog"]


def test_several_folders_keep_their_names(tmp_path: Path) -> None:
    touch(tmp_path, "a/cat.jpg", "b/cat.jpg", "dog.png")
    inputs = find_inputs([tmp_path / "a", tmp_path / "b", tmp_path / "dog.png"], tmp_path / "out")
    assert stems(inputs) == ["a/cat", "b/cat", "dog"]


def test_stems_that_meet_keep_their_extensions(tmp_path: Path) -> None:
    touch(tmp_path, "cat.jpg", "cat.png", "dog.png", "v1.2.png")
    assert stems(find_inputs([tmp_path], tmp_path / "out")) == ["cat.jpg", "cat.png", "dog", "v1.2"]


@pytest.mark.parametrize("second", ["b/cat.jpg", "b/Cat.jpg"])
def test_files_that_would_share_a_name_are_refused(second: str, tmp_path: Path) -> None:
    touch(tmp_path, "a/cat.jpg", second)
    with pytest.raises(ValueError, match="under one name"):
        find_inputs([tmp_path / "a/cat.jpg", tmp_path / second], tmp_path / "out")
    assert len(find_inputs([tmp_path / "a/cat.jpg", tmp_path / second])) == 2, "nothing is written: no clash"


def test_a_file_given_twice_is_done_once(tmp_path: Path) -> None:
    touch(tmp_path, "cat.jpg")
    assert len(find_inputs([tmp_path / "cat.jpg", tmp_path / "cat.jpg"], tmp_path / "out")) == 1


def test_files_beside_photos_are_announced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    touch(tmp_path, "photos/cat.jpg")
    for output, said in (("photos", True), ("photos/out", False), (".", False)):
        find_inputs([tmp_path / "photos"], tmp_path / output)
        assert ("--output is the folder of your photos, so files are written beside them" in capsys.readouterr().err
                ) is said


def test_an_output_above_the_photos_does_not_hide_them(tmp_path: Path) -> None:
    touch(tmp_path, "in/a/cat.jpg", "in/dog.png")
    assert stems(find_inputs([tmp_path / "in"], tmp_path)) == ["a/cat", "dog"]
    assert stems(find_inputs([tmp_path / "in/a", tmp_path / "in/dog.png"], tmp_path / "in")) == ["a/cat", "dog"]


def test_where_only_outputs_are_left_nothing_starts(spit: Callable[..., Any], tmp_path: Path,
                                                    photo: Callable[..., Path]) -> None:
    photos, out = tmp_path / "in", tmp_path / "in/out"
    given = photo(photos / "a.png")
    assert spit("tokenize", photos, "-o", out).code == 0
    given.unlink()
    reason = "expected images, got none but those that spit wrote; give the folder of your photos, or another --output"
    assert spit("tokenize", photos, "-o", out).error == f"spit: {photos}: {reason}\n"
    assert spit("tokenize", out, "-o", out).error == f"spit: {out}: {reason}\n"
    other = photo(tmp_path / "b.png")
    assert len(spit("tokenize", out, other, "-o", out, "--json").json["images"]) == 1, "as a shell's * names them"


def test_an_output_that_is_a_file_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "out")
    with pytest.raises(ValueError, match="expected a folder for --output"):
        Output(tmp_path / "out")


def test_a_missing_path_does_not_stop_the_others(spit: Callable[..., Any], photo: Callable[..., Path],
                                                 tmp_path: Path) -> None:
    missing = tmp_path / "missing.jpg"
    given = (photo(tmp_path / "a.png"), missing, photo(tmp_path / "b.png"))
    result = spit("tokenize", *given, "-o", tmp_path / "out", "--json")
    assert result.code == 2
    assert [Path(image["image"]).name for image in result.json["images"]] == ["a.png", "b.png"]
    assert [failure["image"] for failure in result.json["failed"]] == [str(missing)]
    reason = "expected an image file, but no such path exists; check the spelling"
    assert result.err == f"spit: {missing}: {reason}\nspit: 1 of 3 images failed\n"


def test_where_no_path_is_there_nothing_starts(tmp_path: Path) -> None:
    for paths in (["nowhere"], ["nowhere", "missing"]):
        with pytest.raises(ImageError, match="nowhere: expected an image file or a folder"):
            find_inputs([tmp_path / path for path in paths])
