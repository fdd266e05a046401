"""Read image files as tensors, safely also if they are hostile."""

import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from spit.errors import ImageError

if TYPE_CHECKING:
    from torch import Tensor

ImageSource = str | os.PathLike[str] | bytes | BinaryIO

MAX_PIXELS = 100_000_000
URL = re.compile(r"(\w{2,}:)/+")  # pathlib makes one slash of two; one letter is a drive

# Pillow reads more, but EPS starts Ghostscript, a truncated JPEG 2000 can decode without an error, and each further
# parser is a larger surface for hostile files.
FORMATS: dict[str, tuple[str, ...]] = {
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"),
    "PNG": (".png", ".apng"),
    "WEBP": (".webp",),
    "GIF": (".gif",),
    "BMP": (".bmp", ".dib"),
    "TIFF": (".tif", ".tiff"),
    "PPM": (".ppm", ".pgm", ".pbm", ".pnm", ".pfm"),
    "AVIF": (".avif",),
}


def load_image(source: ImageSource, max_pixels: int = MAX_PIXELS) -> "Tensor":
    """Read an image file as upright RGB on a white background.

    - The EXIF orientation is applied. Only the first frame of an animation or page of a document is read.
    - Transparency (RGBA, LA, palette or colour key) is composited on white.
    - 16-bit grey is scaled, v·255/65535 rounded, not clipped. 32-bit integers are read as 16-bit values; floats as
      fractions of the smallest of 1, 255 and 65535 that no value exceeds. Values outside these ranges are refused.
      Pillow reads 16-bit colour as its high byte.
    - CMYK is converted without its colour profile; profiles are not applied.

    Args:
        source: a path, the bytes of a file, or a binary file object, which is read to its end and left open.
        max_pixels: limit on the pixels in the header, checked before decoding, which takes up to 4 bytes a pixel
            (16-bit colour 8) even if the data is damaged. Pillow's own limit, twice ``PIL.Image.MAX_IMAGE_PIXELS``
            (default: 179 million), applies too; Pillow warns beyond half of it, and of damaged metadata.

    Shape:
        ``(3, H, W)`` uint8, contiguous.

    Raises:
        ImageError: the file is missing, unreadable, empty, truncated, of no known format, or too large.
        TypeError: the source is none of the above, or a file object opened in text mode.
        ValueError: ``max_pixels`` is not positive.

    Example:
        >>> import io, spit
        >>> from PIL import Image
        >>> file = io.BytesIO()
        >>> Image.new("L", (40, 30)).save(file, "PNG")
        >>> spit.load_image(file.getvalue()).shape
        torch.Size([3, 30, 40])
    """
    import torch  # not at the top: spit.runtime decodes without it

    return torch.from_numpy(decode(source, max_pixels)).permute(2, 0, 1).contiguous()


def decode(source: ImageSource, max_pixels: int = MAX_PIXELS, least: int | None = None,
           name: str | None = None) -> NDArray[np.uint8]:
    """The pixels of :func:`load_image`, channels last.

    Args:
        least: if a smaller image will do, the least length of its sides; a JPEG is then decoded at a lower resolution.
        name: for messages (default: the source's own).

    Shape:
        ``(H, W, 3)``.
    """
    if max_pixels < 1:
        raise ValueError(f"expected max_pixels of at least 1, got {max_pixels}")
    shown, file = _open(source)
    shown = name or shown
    with file, _identify(file, shown, max_pixels) as image:
        try:
            if least is not None:
                image.draft(None, (least, least))
            image.load()
            upright: Image.Image = image
            with suppress(Exception):  # the pixels are good even if the metadata is damaged
                upright = ImageOps.exif_transpose(image)
            return to_rgb(upright, shown)
        except ImageError:
            raise
        except Exception as error:  # on damaged bytes Pillow's decoders raise many kinds of errors
            raise ImageError(f"{shown}: expected a whole {image.format} image, but its data is truncated or damaged "
                             f"({_reason(error)}); get the file again") from error


def expect_some(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Raise ImageError, about the first one, if none of the paths of images and folders exists."""
    if not any(Path(path).exists() for path in paths):
        name = printable(paths[0])
        raise ImageError(f"{name}: expected an image file or a folder, {no_such_path(name)}")


def no_such_path(name: str) -> str:
    """What to say of a path that does not exist, or of a URL in place of one."""
    if URL.match(name):
        return "got a URL, which spit does not read; download the file first"
    return "but no such path exists; check the spelling"


def header_size(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Width and height according to the header of a file; 0, 0 if it cannot be read."""
    try:
        name, file = _open(path)
        with file:
            return _identify(file, name, sys.maxsize).size
    except ImageError:
        return 0, 0


def _open(source: ImageSource) -> tuple[str, BinaryIO]:
    """The source's name for messages, and a binary file to close after use."""
    if isinstance(source, bytes | bytearray | memoryview):
        return "image bytes", io.BytesIO(source)
    if isinstance(source, str | os.PathLike):
        name = printable(source)
        return name, _open_path(Path(source), name)
    if not callable(getattr(source, "read", None)):
        raise TypeError(f"expected a path, bytes or a binary file object, got {type(source).__name__}")
    name = printable(str(getattr(source, "name", "image file object")))
    try:
        data = source.read()
    except (OSError, ValueError) as error:
        raise ImageError(f"{name}: expected a readable file object ({_reason(error)}); "
                         "open it with mode 'rb'") from error
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"{name}: expected a file object that returns bytes, got {type(data).__name__}; "
                        "open it with mode 'rb'")
    return name, io.BytesIO(data)


def _open_path(path: Path, name: str) -> BinaryIO:
    try:
        if path.is_dir():
            raise ImageError(f"{name}: expected an image file, got a folder; give one of the files in it")
        if path.exists() and not path.is_file():  # opening a pipe would block, a device may never end
            raise ImageError(f"{name}: expected an image file, got a pipe or device; give its content as bytes")
        return path.open("rb")
    except FileNotFoundError as error:
        raise ImageError(f"{name}: expected an image file, {no_such_path(name)}") from error
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise ImageError(f"{name}: expected a readable image file ({_reason(error)}); "
                         "check the path and its permissions") from error


def _identify(file: BinaryIO, name: str, max_pixels: int) -> Image.Image:
    """Read the header, and refuse a file that is no image or has too many pixels."""
    try:
        image = Image.open(file, formats=tuple(FORMATS))
    except UnidentifiedImageError as error:
        empty = file.seek(0, io.SEEK_END) == 0
        got = "an empty file" if empty else "something else, or a damaged header"
        raise ImageError(f"{name}: expected an image ({', '.join(FORMATS)}), got {got}; "
                         "convert it or get it again") from error
    except Image.DecompressionBombError as error:
        raise ImageError(f"{name}: expected no more than the limit of {max_pixels:,} pixels (max_pixels), nor than "
                         f"Pillow's ({_reason(error)}); if you trust the file raise it and "
                         "PIL.Image.MAX_IMAGE_PIXELS") from error
    except Exception as error:
        raise ImageError(f"{name}: expected an image, but its header is truncated or damaged "
                         f"({_reason(error)}); get the file again") from error
    width, height = image.size
    if width * height > max_pixels:
        raise ImageError(f"{name}: expected no more than the limit of {max_pixels:,} pixels (max_pixels), got "
                         f"{width} × {height} = {width * height:,}; raise it if you trust the file")
    if width < 1 or height < 1:
        raise ImageError(f"{name}: expected at least one pixel, got {width} × {height}; get the file again")
    return image


def to_rgb(image: Image.Image, name: str = "PIL image") -> NDArray[np.uint8]:
    """The colours of a PIL image of any mode as :func:`load_image` reads them; its EXIF orientation is not applied.

    Shape:
        ``(H, W, 3)``.
    """
    if image.mode.startswith("I") or image.mode == "F":
        grey = _grey(image, name)
        return np.repeat(grey[:, :, None], 3, axis=2)
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return np.array(image.convert("RGB"))


def _grey(image: Image.Image, name: str) -> NDArray[np.uint8]:
    """Deep grey to 8 bits. Shape: ``(H, W)``."""
    values = np.asarray(image)
    low, high = float(values.min()), float(values.max())
    whites = (1, 255, 65535) if image.mode == "F" else (65535,)
    white = next((white for white in whites if low >= 0 and high <= white), None)
    if white is None:
        raise ImageError(f"{name}: expected grey values in 0…65535, got {low:g}…{high:g}; save it with 8 or 16 bits")
    grey = np.rint(values * np.float32(255 / white)).astype(np.uint8)
    if "transparency" in image.info:
        grey[values == image.info["transparency"]] = 255
    return grey


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def printable(path: str | os.PathLike[str]) -> str:
    """A path without line breaks and control characters; a URL, which may have been a path, with both slashes."""
    name = os.fspath(path)
    name = URL.sub(r"\1//", name, count=1) if URL.match(name) else name
    return name if name.isprintable() else repr(name)
