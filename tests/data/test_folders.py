import logging
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from spit.data.folders import EXTENSIONS, image_paths
from spit.data.images import load_image
from spit.drawing import encode_png
from spit.drawing.plots import new_figure, png_of
from spit.errors import ImageError


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def relative(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in image_paths(root)]


def test_every_depth_folder_by_folder_whatever_the_order_of_creation(tmp_path: Path) -> None:
    expected = ["a-b/9.png", "a.png", "a/1.png", "a/10.png", "a/2.png", "a/sub/deep/1.png", "b.png"]
    expected.sort(key=lambda name: name.split("/"))
    assert expected.index("a/1.png") < expected.index("a-b/9.png"), "a whole folder, then the next"
    touch(tmp_path, *random.Random(0).sample(expected, len(expected)))
    assert relative(tmp_path) == expected


@pytest.mark.parametrize("extension", [".jpg", ".JPG", ".jpeg", ".Png", ".webp", ".gif", ".bmp", ".tif", ".avif"])
def test_known_extensions_in_any_case(extension: str, tmp_path: Path) -> None:
    touch(tmp_path, f"image{extension}", "notes.txt", "labels.csv", "png", "archive.png.zip", "anno.mat")
    assert relative(tmp_path) == [f"image{extension}"]


def test_hidden_files_and_folders_are_left_out(tmp_path: Path) -> None:
    touch(tmp_path, "cat.jpg", "._cat.jpg", ".hidden/dog.jpg", "a/.b/c.jpg", "a/d.jpg")
    assert relative(tmp_path) == ["a/d.jpg", "cat.jpg"]


def test_a_root_below_a_hidden_folder_is_fine(tmp_path: Path) -> None:
    touch(tmp_path, ".cache/set/cat.jpg")
    assert relative(tmp_path / ".cache" / "set") == ["cat.jpg"]


def test_a_folder_called_like_an_image_is_walked(tmp_path: Path) -> None:
    touch(tmp_path, "album.png/cat.jpg")
    assert relative(tmp_path) == ["album.png/cat.jpg"]


def test_links_to_files_are_followed_and_loops_end(tmp_path: Path) -> None:
    touch(tmp_path, "a/cat.jpg")
    (tmp_path / "a" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "link.jpg").symlink_to(tmp_path / "a" / "cat.jpg")
    assert relative(tmp_path) == ["a/cat.jpg", "link.jpg"]


def test_string_roots_and_loading(tmp_path: Path) -> None:
    Image.new("RGB", (3, 2), "lime").save(tmp_path / "one.png")
    [path] = image_paths(str(tmp_path))
    assert load_image(path)[:, 0, 0].tolist() == [0, 255, 0]


@given(names=st.sets(st.text("abcXYZ019_-", min_size=1, max_size=6), min_size=1, max_size=8))
def test_lists_each_image_once_in_order(names: set[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("images")
    files = {f"{name[0]}/{name}.png" for name in names}
    touch(root, *files)
    assert relative(root) == sorted(files, key=lambda name: name.split("/"))


def test_extensions_are_lower_case_with_a_dot() -> None:
    assert all(extension == extension.lower() and extension[0] == "." for extension in EXTENSIONS)


@pytest.mark.parametrize(("name", "words"), [
    ("empty", r"empty: .*\.jpg.*got none"), ("missing", "missing: .*exists"), ("cat.jpg", r"cat\.jpg: .*got a file"),
    ("https://example.org/photos", "https://example.org/photos: .*URL")])
def test_what_is_no_folder_of_images(name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    touch(tmp_path, "cat.jpg", "empty/notes.txt")
    with pytest.raises(ImageError, match=words):
        image_paths(Path(name))


def test_a_folder_that_cannot_be_listed_is_not_skipped(
    public_path: Path, unprivileged: Callable[[], AbstractContextManager[None]]
) -> None:
    touch(public_path, "cat.jpg", "locked/dog.jpg")
    (public_path / "locked").chmod(0)
    with unprivileged(), pytest.raises(ImageError, match=r"locked: .*Permission denied"):
        image_paths(public_path)
    (public_path / "locked").chmod(0o700)


def test_pictures_of_several_photos_say_that_spit_wrote_them(tmp_path: Path) -> None:
    touch(tmp_path, "cat.jpg", "mine/demo.png")
    picture = encode_png(Image.new("RGB", (3, 2)))
    for name in ("demo.png", "correspondences.png", "cutout.png"):
        (tmp_path / name).write_bytes(picture)
    assert relative(tmp_path) == ["cat.jpg", "cutout.png", "mine/demo.png"]  # another name may be used as a photo


def test_curves_are_no_photo(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    touch(tmp_path, "cat.jpg")
    (tmp_path / "curves.png").write_bytes(png_of(new_figure(2, 1, "title")))
    assert relative(tmp_path) == ["cat.jpg"]


def test_what_spit_wrote_about_a_photo_is_no_photo(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    touch(tmp_path, "cat.jpg", "masks/cat.mask.png", "masks/cat.mine.png", "masks/dog.mask.png", "a.json", "a.b.c.png")
    touch(tmp_path, "masks/cat.segment.json")
    for name in ("cat.mask.png", "dog.mask.png"):  # the second without its document, as if moved here to be a photo
        (tmp_path / "masks" / name).write_bytes(encode_png(Image.new("RGB", (3, 2))))
    with caplog.at_level(logging.WARNING, "spit"):
        assert relative(tmp_path) == ["a.b.c.png", "cat.jpg", "masks/cat.mine.png", "masks/dog.mask.png"]
    assert caplog.messages == [f"{tmp_path}: left out 1 image that spit wrote"]
    for name in ("cat.mine.png", "dog.mask.png"):
        (tmp_path / "masks" / name).unlink()
    with pytest.raises(ImageError, match="expected images, got none but those that spit wrote; give the folder of"):
        image_paths(tmp_path / "masks")
