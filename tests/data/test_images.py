import io
import os
import re
import struct
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from spit.data.images import FORMATS, header_size, load_image
from spit.errors import ImageError

LOSSLESS = {
    "png": {"format": "PNG"},
    "webp": {"format": "WEBP", "lossless": True},
    "bmp": {"format": "BMP"},
    "tiff": {"format": "TIFF"},
    "tiff-lzw": {"format": "TIFF", "compression": "tiff_lzw"},
    "ppm": {"format": "PPM"},
}
LOSSY = {
    "jpeg": {"format": "JPEG", "quality": 95, "subsampling": 0},
    "jpeg-progressive": {"format": "JPEG", "quality": 95, "subsampling": 0, "progressive": True},
    "avif": {"format": "AVIF", "quality": 95},
}
EVERY = LOSSLESS | LOSSY | {"gif": {"format": "GIF"}}

TURNED = {  # what a viewer shows, by the EXIF standard's table of where row 0 and column 0 lie
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a, 1),
}


def smooth(height: int = 24, width: int = 40) -> np.ndarray:
    """A ramp in every channel, different along every axis, so that no turn or swap goes unseen."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([x * 255 // (width - 1), y * 255 // (height - 1), (x + 2 * y) % 90], axis=2).astype(np.uint8)


def encode(image: Image.Image | np.ndarray, **options: object) -> bytes:
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()


def pixels(source: object) -> np.ndarray:
    """load_image as (H, W, 3), after checking what holds for every result."""
    tensor = load_image(source)
    assert tensor.dtype == torch.uint8
    assert tensor.shape[0] == 3
    assert tensor.is_contiguous()
    return tensor.permute(1, 2, 0).numpy()


def refusal(source: object, **options: int) -> str:
    with pytest.raises(ImageError) as caught:
        load_image(source, **options)
    message = str(caught.value)
    assert "expected" in message
    assert "; " in message
    assert message.isprintable(), "one line"
    return message


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, rows: bytes, bits: int = 8, colour: int = 2, extra: bytes = b"") -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def grey3(values: np.ndarray) -> np.ndarray:
    return np.repeat(values[:, :, None], 3, axis=2)


@pytest.mark.parametrize("kind", LOSSLESS)
def test_lossless_files_give_their_pixels(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(encode(smooth(), **LOSSLESS[kind]))
    np.testing.assert_array_equal(pixels(path), smooth())


@pytest.mark.parametrize("kind", LOSSY)
def test_lossy_files_give_nearly_their_pixels(kind: str) -> None:
    calm = smooth()
    calm[..., 2] = 128
    difference = np.abs(pixels(encode(calm, **LOSSY[kind])).astype(int) - calm)
    assert difference.max() <= 12


def test_path_string_bytes_and_file_object_agree(tmp_path: Path) -> None:
    path = tmp_path / "a name with spaces é.png"
    path.write_bytes(encode(smooth(), format="PNG"))
    with path.open("rb") as file:
        for source in (path, str(path), path.read_bytes(), bytearray(path.read_bytes()), file):
            np.testing.assert_array_equal(pixels(source), smooth())
        assert not file.closed


def test_file_object_that_cannot_seek(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as sink:
        sink.write(encode(smooth(6, 8), format="PNG"))
    with os.fdopen(reader, "rb") as source:
        np.testing.assert_array_equal(pixels(source), smooth(6, 8))


@pytest.mark.parametrize("orientation", TURNED)
@pytest.mark.parametrize("kind", ["png", "webp", "tiff", "tiff-lzw"])
def test_exif_turn(kind: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encode(smooth(), exif=exif, **LOSSLESS[kind])
    np.testing.assert_array_equal(pixels(data), TURNED[orientation](smooth()))


@pytest.mark.parametrize("orientation", TURNED)
def test_exif_turn_of_a_jpeg(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    calm = smooth()
    calm[..., 2] = 128
    turned = pixels(encode(calm, exif=exif, **LOSSY["jpeg"]))
    assert np.abs(turned.astype(int) - TURNED[orientation](calm)).max() <= 12


def test_exif_turn_of_16_bit_grey() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    values = np.arange(6, dtype=np.uint16).reshape(2, 3) * 257
    expected = grey3(np.array([[3, 0], [4, 1], [5, 2]], np.uint8))
    np.testing.assert_array_equal(pixels(encode(values, format="PNG", exif=exif)), expected)


@pytest.mark.parametrize("exif", [b"", b"garbage", b"II*\0\xff\xff\xff\x7f", b"MM\0*\0\0\0\x08\0\x09"])
def test_damaged_exif_is_no_reason_to_refuse(exif: bytes) -> None:
    np.testing.assert_array_equal(pixels(encode(smooth(), format="PNG", exif=b"Exif\0\0" + exif)), smooth())


def test_an_unknown_orientation_is_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 42
    np.testing.assert_array_equal(pixels(encode(smooth(), format="PNG", exif=exif)), smooth())


@pytest.mark.parametrize("options", [{"format": "PNG"}, {"format": "BMP"}, {"format": "TIFF"}, {"format": "GIF"}])
def test_grey(options: dict[str, str]) -> None:
    values = smooth()[..., 0]
    np.testing.assert_array_equal(pixels(encode(values, **options)), grey3(values))


@pytest.mark.parametrize("options", [{"format": "PNG"}, {"format": "TIFF"}, {"format": "BMP"}, {"format": "PPM"}])
def test_one_bit(options: dict[str, str]) -> None:
    bits = np.array([[True, False, True], [False, False, True]])
    np.testing.assert_array_equal(pixels(encode(Image.fromarray(bits), **options)), grey3(bits.astype(np.uint8) * 255))


PALETTE = np.array([[250, 10, 20], [30, 240, 50], [60, 70, 230], [0, 0, 0]], np.uint8)
INDICES = np.array([[0, 1, 2, 3], [3, 2, 1, 0]], np.uint8)


def palette_image() -> Image.Image:
    image = Image.frombytes("P", INDICES.shape[::-1], INDICES.tobytes())
    image.putpalette(PALETTE.tobytes())
    return image


@pytest.mark.parametrize("format", ["PNG", "GIF", "BMP", "TIFF"])
def test_palette(format: str) -> None:
    np.testing.assert_array_equal(pixels(encode(palette_image(), format=format)), PALETTE[INDICES])


@pytest.mark.parametrize("format", ["PNG", "GIF"])
def test_transparent_palette_entry_is_white(format: str) -> None:
    data = encode(palette_image(), format=format, transparency=1)
    expected = PALETTE[INDICES]
    expected[INDICES == 1] = 255
    np.testing.assert_array_equal(pixels(data), expected)


def over_white(colour: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    alpha = alpha[..., None].astype(float) / 255
    return alpha * colour + (1 - alpha) * 255


def test_palette_with_degrees_of_transparency() -> None:
    alphas = np.array([255, 128, 0, 10], np.uint8)
    result = pixels(encode(palette_image(), format="PNG", transparency=alphas.tobytes()))
    assert np.abs(result - over_white(PALETTE[INDICES], alphas[INDICES])).max() <= 1


@pytest.mark.parametrize("options", [LOSSLESS["png"], LOSSLESS["tiff"], LOSSLESS["webp"] | {"exact": True}])
def test_rgba_is_composited_on_white(options: dict[str, object]) -> None:
    alpha = np.arange(24 * 40).reshape(24, 40).astype(np.uint8)
    result = pixels(encode(np.dstack([smooth(), alpha]), **options))
    assert np.abs(result - over_white(smooth(), alpha)).max() <= 1
    assert (result[alpha == 0] == 255).all()
    np.testing.assert_array_equal(result[alpha == 255], smooth()[alpha == 255])


def test_grey_with_alpha_is_composited_on_white() -> None:
    grey, alpha = smooth()[..., 0], smooth()[..., 1]
    image = Image.merge("LA", [Image.fromarray(grey), Image.fromarray(alpha)])
    assert np.abs(pixels(encode(image, format="PNG")) - over_white(grey3(grey), alpha)).max() <= 1


def test_colour_keys_are_white() -> None:
    colour = smooth()
    key = tuple(int(v) for v in colour[5, 7])
    expected = colour.copy()
    expected[(colour == colour[5, 7]).all(axis=2)] = 255
    np.testing.assert_array_equal(pixels(encode(colour, format="PNG", transparency=key)), expected)

    grey = colour[..., 0]
    expected = np.where(grey3(grey) == grey[5, 7], 255, grey3(grey)).astype(np.uint8)
    np.testing.assert_array_equal(pixels(encode(grey, format="PNG", transparency=int(grey[5, 7]))), expected)

    deep = np.array([[0, 1000, 65535]], np.uint16)
    expected = grey3(np.array([[0, 255, 255]], np.uint8))
    np.testing.assert_array_equal(pixels(encode(deep, format="PNG", transparency=1000)), expected)


@pytest.mark.parametrize("options", [{"format": "TIFF"}, {"format": "JPEG", "quality": 100}])
def test_cmyk(options: dict[str, object]) -> None:
    ink = np.zeros((16, 16, 4), np.uint8)
    ink[..., 0], ink[..., 3] = 255, 51  # full cyan, a fifth of black
    image = Image.frombytes("CMYK", (16, 16), ink.tobytes())
    expected = np.array([0, 204, 204])  # (1 − ink)(1 − black), in 255ths
    assert np.abs(pixels(encode(image, **options)).astype(int) - expected).max() <= 3


EVERY_16_BIT = np.arange(65536, dtype=np.uint16).reshape(256, 256)
TO_8_BIT = np.array([(2 * v + 257) // 514 for v in range(65536)], np.uint8).reshape(256, 256)  # v/257, rounded


@pytest.mark.parametrize("options", [{"format": "PNG"}, {"format": "TIFF"}])
def test_16_bit_grey_is_scaled(options: dict[str, str]) -> None:
    np.testing.assert_array_equal(pixels(encode(EVERY_16_BIT, **options)), grey3(TO_8_BIT))


def test_16_bit_big_endian_tiff_and_pgm() -> None:
    big = Image.frombytes("I;16B", (256, 256), EVERY_16_BIT.astype(">u2").tobytes())
    np.testing.assert_array_equal(pixels(encode(big, format="TIFF")), grey3(TO_8_BIT))
    pgm = b"P5 256 256 65535\n" + EVERY_16_BIT.astype(">u2").tobytes()
    np.testing.assert_array_equal(pixels(pgm), grey3(TO_8_BIT))


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_16_bit_values_in_32_bits_are_scaled(dtype: type) -> None:
    np.testing.assert_array_equal(pixels(encode(EVERY_16_BIT.astype(dtype), format="TIFF")), grey3(TO_8_BIT))


def test_floats_up_to_1_or_255_are_fractions_of_it() -> None:
    levels = np.arange(256).reshape(16, 16)
    for white in (1, 255):
        data = encode((levels * (white / 255)).astype(np.float32), format="TIFF")
        np.testing.assert_array_equal(pixels(data), grey3(levels.astype(np.uint8)))


@pytest.mark.parametrize("value", [-1.0, 65536.0, np.nan, np.inf])
def test_deep_values_without_a_known_white_are_refused(value: float) -> None:
    assert "65535" in refusal(encode(np.array([[0.5, value]], np.float32), format="TIFF"))


def test_32_bit_integers_out_of_range_are_refused() -> None:
    assert "65536" in refusal(encode(np.array([[0, 65536]], np.int32), format="TIFF"))


def test_16_bit_colour_keeps_its_high_byte() -> None:
    row = b"\0" + struct.pack(">3H", 0x1234, 0xABCD, 0xFF00)
    np.testing.assert_array_equal(pixels(png(1, 1, row, bits=16)), [[[0x12, 0xAB, 0xFF]]])


@pytest.mark.parametrize(
    "options",
    [{"format": "GIF"}, {"format": "PNG"}, {"format": "WEBP", "lossless": True}, {"format": "TIFF"}],
    ids=lambda options: options["format"],
)
def test_first_frame_of_an_animation(options: dict[str, object]) -> None:
    first, second = (Image.new("RGB", (9, 7), colour) for colour in ("red", "blue"))
    data = encode(first, save_all=True, append_images=[second], **options)
    with Image.open(io.BytesIO(data)) as image:
        assert image.n_frames == 2
    np.testing.assert_array_equal(pixels(data), np.full((7, 9, 3), [255, 0, 0]))


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("part", [0.02, 0.3, 0.7, 0.97])
def test_truncated_files_are_refused(kind: str, part: float, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (24, 40, 3), dtype=np.uint8)  # so that pixels fill the file
    data = encode(noise, **EVERY[kind])
    path = tmp_path / "cut.img"
    path.write_bytes(data[: int(len(data) * part)])
    assert str(path) in refusal(path)


@settings(deadline=None)  # the first AVIF takes longer
@given(st.sampled_from(sorted(EVERY)), st.floats(0, 1))
def test_a_prefix_is_refused_or_the_whole_picture(kind: str, part: float) -> None:
    data = encode(smooth(), **EVERY[kind])
    try:
        result = load_image(data[: int(len(data) * part)])
    except ImageError:
        return
    assert torch.equal(result, load_image(data))


@pytest.mark.parametrize("format", ["EPS", "PCX", "JPEG2000"])  # EPS starts a program
def test_other_formats_of_pillow_are_not_read(format: str) -> None:
    data = encode(Image.new("RGB", (4, 4)), format=format)
    with Image.open(io.BytesIO(data)) as image:
        assert image.format == format
    assert "got something else" in refusal(data)


@pytest.mark.parametrize(("name", "words"), [
    ("", ""), ("photo.png/inside", ""), ("x" * 5000, ""), ("null\0byte.png", ""), ("loop", ""),
    ("empty.png", "empty.png: .*empty file"), ("notes.jpg", "notes.jpg: .*JPEG, PNG"), ("folder", "folder: .*a folder"),
    ("none.jpg", "none.jpg: .*exists"), ("https://example.org/a.jpg", "https://example.org/a.jpg: .*URL"),
    (Path("https://example.org/a.jpg"), "https://example.org/a.jpg: .*URL"),
    ("pipe.png", "pipe or device"), ("/dev/zero", "pipe or device"), ("two\nlines.png", r"two\\nlines\.png")])
def test_paths_that_hold_no_image(
    name: str | Path, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("photo.png").write_bytes(encode(smooth(), format="PNG"))
    Path("loop").symlink_to("loop")
    Path("empty.png").touch()
    Path("notes.jpg").write_text("not a picture\n" * 100)
    Path("folder").mkdir()
    os.mkfifo("pipe.png")
    assert re.search(words, refusal(name))


def test_a_file_without_read_permission(
    public_path: Path, unprivileged: Callable[[], AbstractContextManager[None]]
) -> None:
    path = public_path / "secret.png"
    path.write_bytes(encode(smooth(), format="PNG"))
    path.chmod(0)
    with unprivileged():
        assert "Permission denied" in refusal(path)


def test_the_pixel_limit_is_inclusive() -> None:
    data = encode(smooth(5, 6), format="PNG")
    assert load_image(data, max_pixels=30).shape == (3, 5, 6)
    assert re.search("29 pixels.*6 × 5 = 30|6 × 5 = 30.*29 pixels", refusal(data, max_pixels=29))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_the_default_limit_is_checked_before_decoding() -> None:
    message = refusal(png(10_001, 10_000, b""))
    assert "100,000,000" in message
    assert "100,010,000" in message
    assert "truncated or damaged" in refusal(png(9_000, 9_000, b"")), "within the limit, but without its data"
    assert "MAX_IMAGE_PIXELS" in refusal(png(60_000, 60_000, b"")), "beyond Pillow's own limit too"


@pytest.mark.parametrize("limit", [0, -5])
def test_a_limit_below_one_is_a_mistake(limit: int) -> None:
    with pytest.raises(ValueError, match=f"max_pixels of at least 1, got {limit}"):
        load_image(encode(smooth(), format="PNG"), max_pixels=limit)


@pytest.mark.parametrize("source", [None, 3, torch.zeros(3, 4, 4), ["a.png"], io.StringIO("abc")])
def test_other_sources_are_type_errors(source: object) -> None:
    with pytest.raises(TypeError, match=f"got {type(source).__name__}|mode 'rb'"):
        load_image(source)


def test_a_closed_file_object(tmp_path: Path) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(encode(smooth(), format="PNG"))
    with path.open("rb") as file:
        pass
    assert str(path) in refusal(file)


def warning_jpeg() -> bytes:
    """A sound JPEG with an EXIF block at which Pillow warns."""
    entries = struct.pack("<HHHII", 1, 0x010E, 2, 500, 4000) + b"\0\0\0\0"
    return encode(smooth(), format="JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0" + entries)


@pytest.mark.filterwarnings("default")
def test_threads_leave_the_warning_filters_alone() -> None:
    data = encode(np.tile(smooth(), (10, 10, 1)), format="PNG")
    before = list(warnings.filters)
    with warnings.catch_warnings(record=True), ThreadPoolExecutor(8) as pool:
        inside = list(warnings.filters)
        results = list(pool.map(load_image, [data, warning_jpeg()] * 40))
        assert warnings.filters == inside
    assert all(torch.equal(result, results[i % 2]) for i, result in enumerate(results))
    assert warnings.filters == before


def test_every_format_is_one_that_pillow_knows() -> None:
    Image.init()
    assert set(FORMATS) <= set(Image.OPEN)


def test_the_size_in_a_header(tmp_path: Path) -> None:
    Image.new("RGB", (7, 5)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes()[:20])
    assert [header_size(tmp_path / name) for name in ("a.png", "b.png", "none.png")] == [(7, 5), (0, 0), (0, 0)]
    os.mkfifo(tmp_path / "c.png")
    assert header_size(tmp_path / "c.png") == (0, 0)  # without waiting for a writer
