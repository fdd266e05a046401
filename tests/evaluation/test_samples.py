from pathlib import Path

import pytest

from spit.errors import ImageError
from spit.evaluation.samples import Sample, find_images, spread


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
