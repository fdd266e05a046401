"""Headers that claim more pixels than their data can make are refused before memory is allocated."""

import io
import logging
import struct
import zlib
from typing import Any

import pytest
from PIL import Image

from spit.data.images import load_image
from spit.errors import ImageError

SIDE = 9000  # 81 million pixels: within max_pixels


def flat(mode: str, side: int, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.new(mode, (side, side)).save(file, kind, **options)
    return file.getvalue()


def png(side: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 16, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def tiff(compression: str | None) -> bytes:
    """A small TIFF whose tags say that it is large."""
    data = bytearray(flat("1" if compression == "group4" else "RGB", 64, "TIFF", compression=compression))
    start = struct.unpack_from("<I", data, 4)[0]
    for entry in range(struct.unpack_from("<H", data, start)[0]):
        place = start + 2 + 12 * entry
        tag = struct.unpack_from("<H", data, place)[0]
        if tag in (256, 257):  # width, height
            struct.pack_into("<HHII", data, place, tag, 4, 1, SIDE)
    return bytes(data)


def jpeg() -> bytes:
    data = flat("RGB", 16, "JPEG")
    frame = data.index(b"\xff\xc0")
    return data[: frame + 5] + struct.pack(">HH", SIDE, SIDE) + data[frame + 9 :]


BOMBS = {"png": png(SIDE), "jpeg": jpeg(), "ppm": b"P6 9000 9000 255\n" + bytes(300),
         "bmp": (small := flat("RGB", 4, "BMP"))[:18] + struct.pack("<ii", SIDE, SIDE) + small[26:],
         **{f"tiff {name}": tiff(name) for name in (None, "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg",
                                                    "group4")}}


@pytest.mark.parametrize("name", BOMBS)
def test_a_header_that_claims_too_much(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)
    monkeypatch.setattr("PIL.TiffImagePlugin.TiffImageFile.load", load)
    with pytest.raises(ImageError, match=f"bytes cannot hold {SIDE} × {SIDE} pixels"):
        load_image(BOMBS[name])


@pytest.mark.parametrize(("kind", "mode", "options"), [
    ("PNG", "1", {"optimize": True}), ("PNG", "P", {"optimize": True}), ("PNG", "RGB", {}), ("GIF", "P", {}),
    ("JPEG", "L", {"progressive": True, "quality": 1}), ("WEBP", "RGB", {"lossless": True}), ("PPM", "1", {}),
    ("BMP", "1", {}), ("TIFF", "1", {"compression": "tiff_lzw"}), ("TIFF", "1", {"compression": "tiff_adobe_deflate"}),
    ("TIFF", "1", {"compression": "packbits"}), ("TIFF", "1", {"compression": "group4"}), ("TIFF", "RGB", {})])
def test_the_most_compressed_images_are_read(kind: str, mode: str, options: dict[str, Any]) -> None:
    assert load_image(flat(mode, 1500, kind, **options)).shape == (3, 1500, 1500)


def test_a_small_frame_on_a_large_screen_is_read() -> None:
    data = bytearray(flat("P", 4, "GIF"))
    struct.pack_into("<HH", data, 6, 1000, 1000)
    assert load_image(bytes(data)).shape == (3, 1000, 1000)


def test_pillow_logs_nothing_on_stderr_by_itself() -> None:
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("PIL").handlers)


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "jpeg", "group4"])
def test_libtiff_prints_nothing(compression: str, capfd: pytest.CaptureFixture[str]) -> None:
    data = bytearray(flat("1" if compression == "group4" else "RGB", 64, "TIFF", compression=compression))
    capfd.readouterr()
    refused = 0
    for place in range(8, len(data), 3):
        damaged = data.copy()
        damaged[place] ^= 0x5A
        try:
            load_image(bytes(damaged))
        except ImageError:
            refused += 1
    assert refused > 0
    assert capfd.readouterr().err == ""
