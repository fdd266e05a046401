"""The count law (App. B, Table B1): how many superpixels at each level.

    python benchmarks/counts.py

The 200 test images of BSDS500, their central square resized to 224² and 256² (the paper: all of
ImageNet's training images). Bars: within 15 % of the paper at levels 1–3 and 10 % at level 4.
``spit evaluate counts`` counts any images.
"""

from provenance import arguments, bsds_images, launch, print_provenance

import spit
from spit.evaluation.counts import Counts
from spit.evaluation.runner import Runner
from spit.evaluation.samples import Sample

BARS = (0.15, 0.15, 0.15, 0.10)


def main() -> None:
    args = arguments(__doc__).parse_args()
    paths = bsds_images(args.shared)
    print_provenance(f"BSDS500 test, {len(paths)} images, central square, bicubic")
    samples = [Sample(path.name, path) for path in paths]
    variants = {
        "default": spit.SuperpixelTokenizer(),
        "published features and loops": spit.SuperpixelTokenizer(features="published", self_loop="published"),
        "self-loops without the clip": spit.SuperpixelTokenizer(self_loop="paper"),
    }
    for name, tokenizer in variants.items():
        print(name)
        for row in Runner().rows(Counts(paths[0].parent, samples, (224, 256), tokenizer)):
            change, bar = row.change or 0.0, BARS[row.level - 1]
            verdict = "within" if abs(change) <= bar else "NOT within"
            print(f"  {row.size}² level {row.level}: {row.regions.value:9.1f} (paper {row.paper:9.1f}, {change:+7.1%}, "
                  f"{verdict} {bar:.0%})")


if __name__ == "__main__":
    launch(main)
