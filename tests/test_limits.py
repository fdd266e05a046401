"""The limits of docs/limits.md: each holds, and is the one that the page states."""

import io
import re
import struct
import zlib
from pathlib import Path

import pytest
import torch
from PIL import Image

import spit
from spit.batch.options import MAX_BYTES, Work
from spit.data.capacity import PER_BYTE
from spit.data.images import MAX_PIXELS, load_image
from spit.data.shards import LONGEST, index_shard
from spit.drawing import encode_labels
from spit.drawing.labels import GREY_REGIONS
from spit.predictor import KEPT, LARGEST, SEEN

PAGE = (Path(__file__).parents[1] / "docs" / "limits.md").read_text()


def stated(row: str) -> int:
    """The first number that the page states for a limit."""
    [limit] = re.findall(rf"^\| {re.escape(row)} \| (.*?) \|", PAGE, re.MULTILINE)
    return int(re.search(r"\d[\d,]*", limit)[0].replace(",", ""))


def png(width: int, height: int, size: int = 0) -> bytes:
    """A PNG that claims so many pixels, with so many bytes of data."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)) + chunk(
        b"IDAT", bytes(size)) + chunk(b"IEND", b"")


def test_the_page_states_what_the_code_has() -> None:
    assert stated("pixels of an image file") == MAX_PIXELS
    assert stated("pixels of an image file, by its bytes") == PER_BYTE["PNG"]
    assert stated("Pillow's own limit") == 2 * Image.MAX_IMAGE_PIXELS
    assert stated("bytes of an image file in `spit batch`") == MAX_BYTES == Work().max_bytes
    assert stated("bytes of a class (`key.cls`) in a shard") == LONGEST
    assert stated("side of the square that a model sees") == LARGEST
    assert stated("pixels of a whole image that a model sees") == SEEN
    assert stated("numbers of a pass that are kept for explanations") == KEPT
    assert stated("regions in a label map as 16-bit PNG") == GREY_REGIONS


def test_pixels_of_a_file() -> None:
    with pytest.raises(spit.ImageError, match="expected no more than the limit of 100,000,000 pixels"):
        load_image(png(MAX_PIXELS // 1000 + 1, 1000, 10**6))
    with pytest.raises(spit.ImageError, match="bytes cannot hold 10000 × 10000 pixels"):
        load_image(png(10_000, 10_000, 100))
    with pytest.raises(spit.ImageError, match="nor than Pillow's"):
        load_image(png(20_000, 10_000, 10**6), max_pixels=10**9)


def test_bytes_of_a_class(tmp_path: Path) -> None:
    import tarfile

    for size, fits in ((LONGEST, True), (LONGEST + 1, False)):
        with tarfile.open(tmp_path / "a.tar", "w") as archive:
            for name, data in (("a.png", b"?"), ("a.cls", b"7" * size)):
                about = tarfile.TarInfo(name)
                about.size = len(data)
                archive.addfile(about, io.BytesIO(data))
        if fits:
            assert len(index_shard(tmp_path / "a.tar")) == 1
        else:
            with pytest.raises(spit.ImageError, match="where a class is expected"):
                index_shard(tmp_path / "a.tar")


@pytest.fixture(scope="module")
def predictor() -> spit.Predictor:
    return spit.Predictor(spit.create_model("vit_tiny_16", depth=1).eval())


def test_sizes_that_a_model_sees(predictor: spit.Predictor) -> None:
    with pytest.raises(ValueError, match="expected a size of 1 to 16,384 pixels, got 16385"):
        predictor(torch.zeros(3, 8, 8), size=LARGEST + 1)
    seen = predictor(torch.zeros(3, 700, 900), crop=False)
    assert seen.images[0].shape[1:].numel() <= SEEN
    assert seen.sizes == [(700, 900)]
    assert predictor(torch.zeros(3, 700, 900), crop=False, size=700).images[0].shape == (3, 700, 900)


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


def test_regions_of_a_label_map() -> None:
    labels = torch.arange(GREY_REGIONS + 1).clamp(max=GREY_REGIONS - 1)
    assert encode_labels(labels[:, None])[1] == "grey16"
    assert encode_labels(torch.arange(GREY_REGIONS + 1)[:, None])[1] == "rgba32"
