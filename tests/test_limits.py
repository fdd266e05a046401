"""The limits of docs/limits.md: each holds, and is the one that the page states."""

import re
from pathlib import Path

import pytest
from PIL import Image

import spit
from spit.batch.options import MAX_BYTES, Work
from spit.data.images import MAX_PIXELS
from spit.data.shards import LONGEST
from spit.drawing.labels import GREY_REGIONS
from spit.predictor import KEPT, LARGEST, SEEN
from spit.tiles.run import MOST_PIXELS

PAGE = (Path(__file__).parents[1] / "docs" / "limits.md").read_text()


def stated(row: str) -> int:
    """The first number that the page states for a limit."""
    [limit] = re.findall(rf"^\| {re.escape(row)} \| (.*?) \|", PAGE, re.MULTILINE)
    return int(re.search(r"\d[\d,]*", limit)[0].replace(",", ""))


def test_the_page_states_what_the_code_has() -> None:
    assert stated("pixels of an image file") == MAX_PIXELS
    assert stated("Pillow's own limit") == 2 * Image.MAX_IMAGE_PIXELS
    assert stated("bytes of an image file in `spit batch`") == MAX_BYTES == Work().max_bytes
    assert stated("bytes of a class (`key.cls`) in a shard") == LONGEST
    assert stated("side of the square that a model sees") == LARGEST
    assert stated("pixels of [tiled images](large.md)") == MOST_PIXELS
    assert stated("pixels of a whole image that a model sees") == SEEN
    assert stated("numbers of a pass that are kept for explanations") == KEPT
    assert stated("regions in a label map as 16-bit PNG") == GREY_REGIONS


@pytest.mark.parametrize(("row", "make"), [
    ("side of square patches", lambda value: spit.PatchTokenizer(value)),
    ("levels of a hierarchy", lambda value: spit.SuperpixelTokenizer(levels=value)),
    ("classes of a model", lambda value: spit.ModelConfig(num_classes=value)),
    ("columns of a token", lambda value: spit.ModelConfig(width=value, heads=1)),
    ("depth of a model", lambda value: spit.ModelConfig(depth=value))])
def test_options(row: str, make: object) -> None:
    make(stated(row))
    with pytest.raises(ValueError, match=f"of at most {stated(row)}, got {stated(row) + 1}"):
        make(stated(row) + 1)
