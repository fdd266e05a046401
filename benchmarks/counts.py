"""The count law (App. B, Table B1): how many superpixels at each level.

    python benchmarks/counts.py

The 200 test images of BSDS500, their central square resized to 224² and 256² (the paper: all of
ImageNet's training images). Bars: within 15 % of the paper at levels 1–3 and 10 % at level 4.
"""

from pathlib import Path

import torch
from PIL import Image
from provenance import arguments, bsds_images, print_provenance

import spit

PAPER = {224: (11940.278, 3155.512, 794.650, 197.411), 256: (15496.020, 4097.510, 1031.727, 256.051)}
BARS = (0.15, 0.15, 0.15, 0.10)


def main() -> None:
    args = arguments(__doc__).parse_args()
    paths = bsds_images(args.shared)
    print_provenance(f"BSDS500 test, {len(paths)} images, central square, bicubic")
    variants = {
        "default": spit.SuperpixelTokenizer(),
        "published features and loops": spit.SuperpixelTokenizer(features="published", self_loop="published"),
        "self-loops without the clip": spit.SuperpixelTokenizer(self_loop="paper"),
    }
    for name, tokenizer in variants.items():
        print(name)
        for side, paper in PAPER.items():
            batch = torch.stack([square(path, side) for path in paths])
            means = tokenizer.hierarchy(batch).counts[1:].double().mean(1).tolist()
            for level, (mean, expected, bar) in enumerate(zip(means, paper, BARS, strict=True), start=1):
                change = mean / expected - 1
                verdict = "within" if abs(change) <= bar else "NOT within"
                print(f"  {side}² level {level}: {mean:9.1f} (paper {expected:9.1f}, {change:+7.1%}, "
                      f"{verdict} {bar:.0%})")


def square(path: Path, side: int) -> torch.Tensor:
    """The central square of an image, resized."""
    _, height, width = (image := spit.load_image(path)).shape
    short = min(height, width)
    top, left = (height - short) // 2, (width - short) // 2
    cut = image[:, top : top + short, left : left + short]
    picture = Image.fromarray(cut.movedim(0, -1).numpy()).resize((side, side), Image.Resampling.BICUBIC)
    return torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(side, side, 3).movedim(-1, 0)


if __name__ == "__main__":
    main()
