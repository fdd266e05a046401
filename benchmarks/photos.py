"""Masks of photos drawn by seed: a page to look at, and how many pieces and holes each has.

    python benchmarks/photos.py [--count 20] [--seed 0] --output FOLDER

Photos and human masks are ECSSD's. ``photos.png`` has each photo with its mask; ``masks.png`` has spit's masks alone,
and may be shown where the data may not.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image
from provenance import arguments, launch, print_provenance

import spit
from spit.drawing import Tile, draw_mask, draw_panel
from spit.evaluation.masks import TRUE_POSITIVE, Mask, count_parts, find_samples, read_pair, score

ACROSS = 5


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--count", type=int, default=20, help="photos")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--model", default="spit_tiny_16", help="what spit.load takes")
    parser.add_argument("--output", type=Path, required=True, help="folder for the pages")
    args = parser.parse_args()
    samples = find_samples(args.shared / "data" / "ecssd")
    chosen = sorted(np.random.default_rng(args.seed).choice(len(samples), args.count, replace=False).tolist())
    print_provenance(f"ECSSD, {args.count} photos; {args.model}", args.seed)
    predictor = spit.load(args.model, "cpu")
    tiles, masks, rows = [], [], []
    print("| photo | IoU | pieces | holes |\n|---|---:|---:|---:|")
    for index in chosen:
        image, truth = read_pair(samples[index])
        found = spit.segment(predictor, image)
        mask = found.mask[0].numpy()
        iou, (pieces, holes) = score(found.saliency[0].numpy(), mask, truth).iou, count_parts(mask)
        rows.append((iou, pieces, holes))
        print(f"| {samples[index].name} | {iou:.3f} | {pieces} | {holes} |", flush=True)
        tile = Tile(draw_mask(image, mask), samples[index].name, f"IoU {iou:.2f}")
        tiles.append(tile)
        masks.append(replace(tile, picture=draw_alone(mask)))
    print("| mean | {:.3f} | {:.2f} | {:.2f} |".format(*np.mean(rows, axis=0)))
    args.output.mkdir(parents=True, exist_ok=True)
    for name, own in (("photos", tiles), ("masks", masks)):
        page = draw_panel([own[first : first + ACROSS] for first in range(0, len(own), ACROSS)])
        page = page.resize((1400, round(1400 * page.height / page.width)), Image.Resampling.LANCZOS)
        if name == "masks":  # two colours, and greys for the captions
            page = page.quantize(64, Image.Quantize.MAXCOVERAGE)
        page.save(args.output / f"{name}.png", optimize=True)


def draw_alone(mask: Mask) -> Image.Image:
    """The mask in yellow on a dark ground."""
    pixels = np.full((*mask.shape, 3), 24, np.uint8)
    pixels[mask] = TRUE_POSITIVE
    return Image.fromarray(pixels)


if __name__ == "__main__":
    launch(main)
