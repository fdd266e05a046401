import json
from collections.abc import Callable
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from spit.cli.console import Say
from spit.cli.inputs import Document, Input, answer_each, find_inputs, side_by_side
from spit.cli.options import Output
from spit.errors import ImageError
from spit.kernels.concurrency import torch_threads


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


def test_what_an_earlier_run_wrote_below_the_folder_is_left_out(tmp_path: Path) -> None:
    touch(tmp_path, "cat.jpg", "spit-output/cat.overlay.png")
    assert stems(find_inputs([tmp_path], tmp_path / "spit-output")) == ["cat"]


def test_an_output_above_the_photos_does_not_hide_them(tmp_path: Path) -> None:
    touch(tmp_path, "in/a/cat.jpg", "in/dog.png")
    assert stems(find_inputs([tmp_path / "in"], tmp_path)) == ["a/cat", "dog"]
    assert stems(find_inputs([tmp_path / "in/a", tmp_path / "in/dog.png"], tmp_path / "in")) == ["a/cat", "dog"]


@pytest.mark.parametrize(("photos", "output"), [
    ("in", "in"), ("in", "./other/../in"), ("./other/../in", "in"), ("in", "{root}/in"), ("link", "in"), ("in", "link"),
    ("in", "."), ("in", "link/..")])
def test_what_earlier_runs_wrote_beside_the_photos_is_left_out(photos: str, output: str, tmp_path: Path,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "in/a/cat.jpg", "in/dog.png", "other/x")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    monkeypatch.chdir(tmp_path)
    for item in find_inputs([Path("in")], Path("in")):
        item.write("json", {}, {"overlay": ("overlay.png", b"1"), "mean": ("mean.png", b"2")})
    for item in find_inputs([Path("in/a"), Path("in/dog.png")], Path("in")):
        item.write("segment.json", {}, {"mask": ("mask.png", b"3")})
    found = find_inputs([Path(photos)], Path(output.format(root=tmp_path)))
    assert stems(found) == ["a/cat", "dog"]
    assert all(item.path.is_relative_to(photos) for item in found), "spelled as the user did"


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


def test_one_that_fails_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    touch(tmp_path, "a.png", "b.png", "c.png")

    def work(item: Input, _: Say) -> Document:
        if item.path.name == "b.png":
            raise ImageError(f"{item.path}: torn\nin two")
        return {"image": item.path.name}

    shown: list[Document] = []
    assert answer_each(find_inputs([tmp_path]), "Working", work, shown.extend, as_json=False) == 2
    assert shown == [{"image": "a.png"}, {"image": "c.png"}]
    capsys.readouterr()
    assert answer_each(find_inputs([tmp_path]), "Working", work, shown.extend, as_json=True, of="all") == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"of": "all", "images": shown, "failed": [
        {"image": str(tmp_path / "b.png"), "error": f"{tmp_path / 'b.png'}: torn in two"}]}
    assert captured.err == f"spit: {tmp_path / 'b.png'}: torn in two\nspit: 1 of 3 images failed\n"


def test_errors_of_the_machine_stop_everything(tmp_path: Path) -> None:
    touch(tmp_path, "a.png", "b.png")
    done: list[Path] = []

    def work(item: Input, _: Say) -> Document:
        done.append(item.path)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        answer_each(find_inputs([tmp_path]), "Working", work, print, as_json=False)
    assert len(done) == 1


def test_the_error_of_a_single_image_is_raised(tmp_path: Path, photo: Callable[..., Path]) -> None:
    def work(item: Input, _: Say) -> Document:
        raise ImageError("torn")

    with pytest.raises(ImageError, match="torn"):
        answer_each(find_inputs([photo(tmp_path / "a.png")]), "Working", work, print, as_json=False)


def test_what_is_said_is_a_line_after_a_while_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a.png")
    now = [0.0]
    monkeypatch.setattr("spit.cli.console.time", SimpleNamespace(monotonic=lambda: now[0]))

    def work(item: Input, say: Say) -> Document:
        for second in (1, 9, 11, 15, 22):
            now[0] = second
            say(f"{item.path.name}: second {second}")
        return {}

    answer_each(find_inputs([tmp_path]), "Working", work, print, as_json=False)
    assert capsys.readouterr().err == "spit: a.png: second 11\nspit: a.png: second 22\n"


def test_files_that_replace_another_images_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a/cat.jpg", "b/cat.jpg")
    monkeypatch.chdir(tmp_path)
    about = tmp_path / "out/cat.segment.json"
    for image in (Path("a/cat.jpg"), tmp_path / "a/cat.jpg"):
        [item] = find_inputs([image], tmp_path / "out")
        item.write("segment.json", {"tokens": 3}, {"mask": ("mask.png", b"1")})
    assert capsys.readouterr().err == ""
    [item] = find_inputs([Path("b/cat.jpg")], tmp_path / "out")
    document = item.write("segment.json", {"tokens": 4}, {"mask": ("mask.png", b"2")})
    [line] = capsys.readouterr().err.splitlines()
    assert f"replaced those of {tmp_path / 'a/cat.jpg'}" in line
    assert json.loads(about.read_text()) == document
    assert (document["image"], document["tokens"], document["files"]) == ("b/cat.jpg", 4, {"mask": "cat.mask.png"})
    assert (tmp_path / "out/cat.mask.png").read_bytes() == b"2"


def test_files_that_only_an_earlier_run_wrote_are_removed(tmp_path: Path) -> None:
    """Of this image, beside its document, and no image that was given."""
    touch(tmp_path, "in/a/cat.jpg", "in/a/cat.gif", "in/cat.above.npy", "in/a/dog.flow.npy", "in/a/cat.mine.npy")
    cat = find_inputs([tmp_path / "in"], tmp_path / "in")[1]
    assert cat.stem == PurePath("a/cat.jpg")
    cat.write("explain.json", {}, {"lime": ("lime.npy", b"1"), "flow": ("flow.npy", b"2")})
    about = tmp_path / "in/a/cat.jpg.explain.json"
    document = json.loads(about.read_text())
    others = ["a/../cat.above.npy", "a/dog.flow.npy", "a/cat.jpg", "a/cat.gif", "a/missing.npy"]
    about.write_text(json.dumps({**document, "files": document["files"] | {name: name for name in others}}))
    cat.write("explain.json", {}, {"flow": ("flow.npy", b"3")})
    left = sorted(path.relative_to(tmp_path / "in").as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["a/cat.gif", "a/cat.jpg", "a/cat.jpg.explain.json", "a/cat.jpg.flow.npy", "a/cat.mine.npy",
                    "a/dog.flow.npy", "cat.above.npy"]


def test_images_side_by_side(tmp_path: Path) -> None:
    items = [Input(Path(name), PurePath(name), tmp_path, frozenset()) for name in "abCDefghijk"]

    def groups(alone: Callable[[Input], bool] | None) -> list[str]:
        return ["".join(item.path.name for item in group) for group in side_by_side(iter(items), alone)]

    assert groups(None) == list("abCDefghijk")
    with torch_threads(1):
        assert groups(lambda item: item.path.name.isupper()) == ["ab", "C", "D", "efgh", "ijk"]


def test_each_image_of_a_group_answers_or_fails_for_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = [Input(Path(f"{number}.png"), PurePath(str(number)), tmp_path, frozenset()) for number in range(5)]
    shown: list[dict[str, Any]] = []

    def work(item: Input, say: Any) -> dict[str, Any]:
        if item.stem.name == "3":
            raise ImageError(f"{item.path}: broken")
        return {"image": item.stem.name, "threads": torch.get_num_threads()}

    with torch_threads(2):
        assert answer_each(items, "Working", work, shown.extend, False, alone=lambda item: False) == 2
    assert shown == [{"image": name, "threads": 1} for name in "0124"]
    assert capsys.readouterr().err == "spit: 3.png: broken\nspit: 1 of 5 images failed\n"
