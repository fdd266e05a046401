"""The pixels that a file can hold, by its format and size: a header alone may claim any number.

A decoder allocates what the header says before it finds that the data ends. So a file is refused whose data could not
make so many pixels under the best compression that its format has. WebP and AVIF code a flat image of any size in a
few bytes; for them the limit is ``max_pixels``.
"""

import math

from PIL import Image

DEFLATE = 1032  # bytes from one: a match of 258 bytes takes two bits
LZW = 4096  # at most so many bytes from a code of 9 bits or more
BITS = 8  # pixels in a byte at one bit each
SLACK = 4096  # pixels that any file may have
PER_BYTE = {  # pixels from a byte of data
    "PNG": DEFLATE * BITS,
    "GIF": LZW,
    "JPEG": 8192,  # one bit for a block, which stands for 32 × 32 pixels at the strongest subsampling
    "MPO": 8192,
    "PPM": BITS,
    "BMP": BITS,
    "DIB": BITS,
}
TIFF_PER_BYTE = {  # by the compression's number
    1: BITS,
    5: LZW * BITS,
    7: 8192,  # JPEG
    8: DEFLATE * BITS,
    32773: 64 * BITS,  # PackBits: 128 bytes from two
    32946: DEFLATE * BITS,
}
COMPRESSION, STRIP_BYTES, TILE_BYTES = 259, 279, 325  # tags of TIFF
RLE = 255  # pixels from a pair of bytes in a BMP


def capacity(image: Image.Image, size: int) -> float:
    """The most pixels that the data of an identified image of ``size`` bytes can make; infinity if any number."""
    if image.format == "TIFF":
        return _tiff(image, size)
    tile = next(iter(getattr(image, "tile", ())), None)
    if image.format == "BMP" and tile and tile[0] == "bmp_rle":
        return SLACK + size * max(RLE, image.width)  # a pair of bytes may end a row
    if image.format == "GIF" and tile and tile[1] != (0, 0, *image.size):
        return math.inf  # a small frame on a large screen
    return SLACK + size * PER_BYTE.get(image.format or "", math.inf)


def _tiff(image: Image.Image, size: int) -> float:
    tags = image.tag_v2  # type: ignore[attr-defined]
    counts = tags.get(STRIP_BYTES) or tags.get(TILE_BYTES) or (size,)
    # Strips may share their bytes, and a damaged count says anything.
    held = sum(min(max(int(count), 0), size) for count in counts) if isinstance(counts, tuple) else size
    compression = tags.get(COMPRESSION, 1)
    if compression in (2, 3, 4):  # fax: a white row takes a bit
        return SLACK + held * BITS * image.width
    return SLACK + held * TIFF_PER_BYTE.get(compression, math.inf)
