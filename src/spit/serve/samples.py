"""Sample pictures: those that scikit-image ships."""

from functools import cache
from importlib.util import find_spec

from PIL import Image

from spit.bench.photos import sample_photos
from spit.drawing.pictures import encode_png

PHOTOS = {"cat": "chelsea.png", "astronaut": "astronaut.png", "coffee": "coffee.png", "rocket": "rocket.jpg",
          "motorcycle": "motorcycle_left.png"}
SIDE = 512  # of the longer side


def sample_names() -> list[str]:
    """The names of the samples; none without scikit-image."""
    return [*PHOTOS] if find_spec("skimage") else []


@cache
def sample_png(name: str) -> bytes:
    """A sample as PNG."""
    with Image.open(sample_photos([PHOTOS[name]])[0]) as photo:
        picture = photo.convert("RGB")
    picture.thumbnail((SIDE, SIDE))
    return encode_png(picture)
