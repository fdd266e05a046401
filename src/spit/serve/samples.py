"""Sample pictures: those that scikit-image ships, or one that is made here."""

import base64
import io
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

from spit.drawing.pictures import encode_png

PHOTOS = {"cat": "chelsea.png", "astronaut": "astronaut.png", "coffee": "coffee.png", "rocket": "rocket.jpg",
          "motorcycle": "motorcycle_left.png"}
SIDE = 512  # of the longer side


@cache
def sample_names() -> list[str]:
    """The names of the samples that are installed."""
    return [name for name in PHOTOS if (path := _path(name)) is not None and path.is_file()] or ["discs"]


@cache
def sample_png(name: str) -> bytes:
    """A sample as PNG; KeyError if there is none of this name."""
    if name not in sample_names():
        raise KeyError(name)
    path = _path(name)
    if path is None:
        return encode_png(_discs())
    with Image.open(io.BytesIO(path.read_bytes())) as photo:
        picture = photo.convert("RGB")
    picture.thumbnail((SIDE, SIDE))
    return encode_png(picture)


@cache
def tiny_png_base64() -> str:
    """A picture of 32 × 32 pixels in base64, for the examples of the API's documentation."""
    pixels = np.full((32, 32, 3), (20, 60, 120), np.uint8)
    pixels[8:24, 8:24] = (250, 200, 40)
    return base64.b64encode(encode_png(Image.fromarray(pixels))).decode()


def _path(name: str) -> Path | None:
    found = find_spec("skimage")
    if found is None or found.origin is None or name not in PHOTOS:
        return None
    return Path(found.origin).parent / "data" / PHOTOS[name]


def _discs() -> Image.Image:
    """Bright discs on a dark ground, with a little noise."""
    random = np.random.default_rng(0)
    rows, columns = np.mgrid[:384, :512]
    pixels = 40 + 30 * np.sin(columns[:, :, None] / np.array([40, 55, 70]))
    for _ in range(12):
        y, x, radius = random.integers([0, 0, 20], [384, 512, 90])
        inside = (rows - y) ** 2 + (columns - x) ** 2 < radius**2
        pixels[inside] = random.uniform(60, 255, 3)
    return Image.fromarray((pixels + random.normal(0, 4, pixels.shape)).clip(0, 255).astype(np.uint8))
