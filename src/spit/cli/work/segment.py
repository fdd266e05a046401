"""``spit segment`` for one image."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from PIL import Image
from torch import Tensor

from spit.answers.segment import Segment
from spit.cli.console import Say, shown
from spit.cli.inputs import Document, Input
from spit.cli.options import Reading
from spit.cli.results import Results
from spit.devices import autocast
from spit.drawing import draw_mask, encode_png
from spit.drawing.pictures import as_picture
from spit.predictor import Predictor
from spit.segmentation.saliency import Segmentation

# The name of each kind in a file: NAME.overlay.png is spit tokenize's, in the same folder by default.
KINDS = {"mask": "mask.png", "cutout": "cutout.png", "overlay": "mask-overlay.png", "saliency": "saliency.png"}


@dataclass(frozen=True)
class SegmentWork:
    """Cuts the salient object out of an image, and writes its files."""

    predictor: Predictor
    question: Segment
    precision: str
    reading: Reading
    results: Results

    def __call__(self, item: Input, say: Say) -> Document:
        doing = f"Segmenting {shown(item.path.name)}:"
        say(f"{doing} reading the file")
        image = self.reading.load(item.path)
        say(f"{doing} cutting it into tokens (the first run compiles)")
        with autocast(self.predictor.device, self.precision):
            prediction = self.question.see(self.predictor, image)
        say(f"{doing} finding the object")
        answer = self.question.of(prediction)
        say(f"{doing} drawing")
        return self.results.write(item, {
            "width": image.shape[2], "height": image.shape[1], "seen": list(prediction.images[0].shape[:0:-1]),
            "model": self.predictor.name, "tokens": int(answer.partition.counts[0]),
            "foreground": round(float(answer.mask[0].float().mean()), 6),
            "tau": None if answer.tau[0].isnan() else float(answer.tau[0])}, draw(image, answer))


def draw(image: Tensor, answer: Segmentation) -> dict[str, tuple[str, bytes]]:
    """The four pictures of one image by their kind, each with the end of its name."""
    pixels = np.asarray(as_picture(image))
    mask = answer.mask[0].cpu().numpy()
    white = mask.astype(np.uint8) * 255
    cutout = np.dstack([np.where(mask[:, :, None], pixels, np.uint8(0)), white])  # nothing hides beneath alpha 0
    soft = np.rint(answer.saliency[0].cpu().numpy() * 255).astype(np.uint8)
    pictures = (Image.fromarray(white), Image.fromarray(cutout), draw_mask(image, mask), Image.fromarray(soft))
    with ThreadPoolExecutor(len(pictures)) as pool:  # large ones take seconds to compress
        return {kind: (suffix, data) for (kind, suffix), data in zip(
            KINDS.items(), pool.map(encode_png, pictures), strict=True)}
