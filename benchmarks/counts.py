"""Regions by level (App. B, Table B1), tokens by merge threshold (Table B2), and what each choice of features costs.

    python benchmarks/counts.py

100 images spread over imagenet_val1k, whose short side is 256: the central square, resized (the paper: all of
ImageNet's training images for the levels, its validation images for the merges). Bars: the release's tokenizer within
5 % of the paper everywhere; the default within 15 % at levels 1 to 3 and 10 % at level 4 on the 200 test images of
BSDS500, bicubic. Equal thresholds compare unlike merges where features differ, so the default is shown at equal shares
of tokens left too. R² is of 50 of the BSDS500 images. ``table.py B1`` counts any images.
"""

from collections.abc import Sequence

import torch
from provenance import arguments, bsds_images, launch, print_provenance
from tables.counts import PAPER, Counts, Row, square
from tables.threshold import PAPER as MERGES
from tables.threshold import PAPER_SIZE, SEARCHED, paper_share, threshold_of_share

import spit
from spit.data.images import load_image
from spit.evaluation.intervals import mean
from spit.evaluation.runner import Runner
from spit.evaluation.samples import Sample, find_images, spread
from spit.evaluation.superpixels import explained_variation
from spit.tokenizers import NestedTokenizer

DEFAULT, RELEASE = spit.SuperpixelTokenizer(), spit.create_tokenizer("published")
VARIANTS = {
    "published": RELEASE,
    "default": DEFAULT,
    "default, self-loops without the clip": spit.SuperpixelTokenizer(self_loop="paper"),
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--limit", type=int, default=100, help="so many images, spread over the set")
    parser.add_argument("--interpolation", choices=["bilinear", "bicubic"], default="bilinear",
                        help="how squares are resized; the paper does not say")
    args = parser.parse_args()
    folder = args.shared / "data" / "imagenet_val1k"
    samples = spread(find_images(folder), args.limit)
    photos = bsds_images(args.shared)
    print_provenance(f"{folder.name}, {len(samples)} images, central square, {args.interpolation}")

    def count(tokenizer: NestedTokenizer, *sizes: int) -> list[Row]:
        return Runner().rows(Counts(folder, samples, sizes, tokenizer, interpolation=args.interpolation))

    for name, tokenizer in VARIANTS.items():
        print(name)
        _show(count(tokenizer, *PAPER), (0.05,) * 4 if tokenizer is RELEASE else (None,) * 4)
    print(f"default, {len(photos)} images of BSDS500, bicubic")
    _show(Runner().rows(Counts(photos[0].parent, [Sample(path.name, path) for path in photos], (224, 256))),
          (0.15, 0.15, 0.15, 0.10))
    print(f"\nTokens by merge threshold at {PAPER_SIZE}²")
    for name, tokenizer, bar in (("published", RELEASE, 0.05), ("default", DEFAULT, None)):
        for threshold, (tokens, *_) in MERGES.items():
            got = count(tokenizer.replace(merge_threshold=threshold), PAPER_SIZE)[-1].regions.value
            print(f"  {name} at {threshold:<4}: {_beside(got, tokens, bar)}", flush=True)
    squares = torch.stack([_read(sample, args.interpolation) for sample in spread(samples, SEARCHED)])
    total = count(DEFAULT, PAPER_SIZE)[-1].regions.value
    for threshold in MERGES:
        share = paper_share(threshold)
        own = threshold_of_share(DEFAULT, squares, share)
        got = count(DEFAULT.replace(merge_threshold=own), PAPER_SIZE)[-1].regions.value
        print(f"  default at the paper's share of {share:.1%}: threshold {own:.4f}, {got:.1f} of {total:.1f} tokens, "
              f"{got / total:.1%}", flush=True)
    images = [load_image(path) for path in spread(photos, 50)]
    print(f"\nR² at level 4, {len(images)} images of BSDS500")
    for name, tokenizer in VARIANTS.items():
        labels = [tokenizer(image).labels[0] for image in images]
        quality = mean([explained_variation(image, one) for image, one in zip(images, labels, strict=True)])
        regions = mean([float(one.max()) + 1 for one in labels])
        print(f"  {name}: {quality.value:.4f} ({quality.low:.4f} to {quality.high:.4f}) at {regions.value:.0f} regions",
              flush=True)


def _show(rows: Sequence[Row], bars: Sequence[float | None]) -> None:
    for row in rows:
        print(f"  {row.size}² level {row.level}: {_beside(row.regions.value, row.paper, bars[row.level - 1])} ± "
              f"{(row.regions.high - row.regions.low) / 2:.1f}", flush=True)


def _beside(value: float, paper: float, bar: float | None) -> str:
    change = value / paper - 1
    verdict = "" if bar is None else f", {'within' if abs(change) <= bar else 'NOT within'} {bar:.0%}"
    return f"{value:9.1f} (paper {paper:9.1f}, {change:+7.1%}{verdict})"


def _read(sample: Sample, interpolation: str) -> torch.Tensor:
    return square(sample.image, PAPER_SIZE, interpolation)


if __name__ == "__main__":
    launch(main)
