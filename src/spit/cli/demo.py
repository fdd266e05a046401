"""``spit demo``: one picture that shows what spit does."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from spit.bench import median_ms
from spit.bench.photos import sample_photos
from spit.cli.classify import show_top, top_json
from spit.cli.console import print_json, show, show_table, shown, waiting
from spit.cli.options import Models, Output, Reading, Running
from spit.cli.outputs import write_files
from spit.drawing import Tile, draw_mean_colors, draw_overlay, draw_panel, encode_png
from spit.drawing.panel import LARGEST
from spit.drawing.pictures import as_picture
from spit.options import Options, option
from spit.partition import Hierarchy
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, VoronoiTokenizer

SAMPLE = "chelsea.png"  # a cat, as scikit-image ships it
REPEATS = 5


@dataclass(frozen=True)
class Sample(Options):
    """What is shown."""

    image: Path | None = option(None, "Your image (default: a sample of scikit-image)", metavar="IMG")


def demo(sample: Sample, models: Models, reading: Reading, output: Output, running: Running) -> int:
    """Tokenize and classify a sample image, and make a picture, demo.png.

    The first run compiles the kernels, 15 to 30 seconds; later runs load them from the cache.
    """
    [path] = [sample.image] if sample.image is not None else sample_photos(
        [SAMPLE], "demo", "the sample image of spit demo (--image takes your own)")
    pixels = reading.load(path)
    predictor = models.load_one(running.device)
    tokenizer = SuperpixelTokenizer()
    with waiting("Classifying; the first run compiles the kernels, 15-30 s") as say:
        classes = top_json(predictor(pixels, crop=True), 3)
        say("Tokenizing; the first run compiles the kernels, 15-30 s")
        pixels = pixels.to(predictor.device)
        hierarchy = tokenizer.hierarchy(pixels)
        milliseconds = median_ms(partial(tokenizer, pixels), pixels.device, REPEATS)
        say("Drawing")
        target = output.output / "demo.png"
        write_files({target: _draw(pixels, hierarchy, classes[0])}, [path])
    counts = hierarchy.counts[1:, 0].tolist()
    if running.as_json:
        print_json({"image": str(path), "width": pixels.shape[2], "height": pixels.shape[1],
                    "levels": [{"level": level, "regions": count} for level, count in enumerate(counts, start=1)],
                    "milliseconds": round(milliseconds, 2), "classes": classes, "picture": str(target)})
        return 0
    show(f"{shown(path.name)}, {pixels.shape[2]} × {pixels.shape[1]} pixels")
    show_table(["level", "regions"], [[str(level), f"{count:,}"] for level, count in enumerate(counts, start=1)])
    show(f"{milliseconds:.1f} ms to the last level, the median of {REPEATS} runs")
    show_top(classes)
    show(f"The picture is {shown(target)}", "bold green")
    return 0


def _draw(pixels: Tensor, hierarchy: Hierarchy, best: dict[str, Any]) -> bytes:
    """Top: one image under three tokenizers. Bottom: the hierarchy from fine to coarse."""
    counts = hierarchy.counts[:, 0].tolist()
    thickness = -(-max(pixels.shape[1:]) // LARGEST)  # a line that is still one pixel once the picture is shrunk
    partitions = {"Square patches": PatchTokenizer(16)(pixels), "Voronoi cells": VoronoiTokenizer(counts[-1])(pixels),
                  "Superpixels": hierarchy[-1]}
    above = [Tile(as_picture(pixels), "Image", f"{best['name']}, {best['probability']:.0%}")]
    above += [Tile(draw_overlay(pixels, partition, thickness), name, f"{int(partition.counts[0]):,} tokens")
              for name, partition in partitions.items()]
    below = [Tile(draw_mean_colors(pixels, hierarchy[level]), f"Level {level}", f"{count:,} regions, mean colours")
             for level, count in enumerate(counts) if level > 0]
    note = "Tokens that follow the image: three ways to cut it, and the hierarchy of superpixels"
    return encode_png(draw_panel([above, below], "Superpixel tokens", note))
