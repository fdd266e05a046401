"""Photos to measure on: those that scikit-image ships, and random views of photos."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from spit.data.images import load_image
from spit.errors import MissingExtra

SAMPLES = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg", "motorcycle_left.png")


def sample_photos(names: Sequence[str] = SAMPLES, extra: str = "bench",
                  purpose: str = "measuring on sample photos (--data takes your own)") -> list[Path]:
    """Photos that come with scikit-image; if it is missing, the error names the extra and its purpose."""
    try:
        folder = Path(str(files("skimage"))) / "data"
    except ImportError as error:
        raise MissingExtra("scikit-image", extra, purpose) from error
    return [folder / name for name in names]


def photo_batch(paths: Sequence[Path], batch: int, height: int, width: int, seed: int = 0) -> Tensor:
    """A batch of different views of the photos: random squares of at least half of each, resized, some flipped.

    Shape:
        ``(B, 3, H, W)`` uint8.
    """
    random = np.random.default_rng(seed)
    photos = [Image.fromarray(load_image(path).movedim(0, -1).numpy()) for path in paths[:batch]]
    views = []
    for index in range(batch):
        photo = photos[index % len(photos)]
        side = int(min(photo.size) * random.uniform(0.5, 1))
        left, top = (int(random.integers(0, extent - side + 1)) for extent in photo.size)
        view = photo.resize((width, height), Image.Resampling.BICUBIC, box=(left, top, left + side, top + side))
        pixels = np.asarray(view)
        views.append(pixels[:, ::-1] if random.random() < 0.5 else pixels)
    return torch.from_numpy(np.stack(views)).movedim(-1, 1).contiguous()
