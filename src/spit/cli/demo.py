"""``spit demo``: one picture that shows what spit does."""

from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text
from torch import Tensor

from spit.bench.timing import median_ms
from spit.cli.classify import top_json, top_table
from spit.cli.console import answers, print_json, shown, waiting
from spit.cli.options import Models, Output, Reading, Running
from spit.cli.outputs import write_files
from spit.drawing import Tile, draw_mean_colors, draw_overlay, draw_panel, encode_png
from spit.drawing.panel import LARGEST
from spit.drawing.pictures import as_picture
from spit.errors import MissingExtra
from spit.options import Options, option
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, VoronoiTokenizer

SAMPLE = "chelsea.png"  # a cat, as scikit-image ships it
LEVELS = 4
REPEATS = 5


@dataclass(frozen=True)
class Sample(Options):
    """What is shown."""

    image: Path | None = option(None, "Your image (default: a sample of scikit-image)", metavar="IMG")

    def path(self) -> Path:
        """The image's file."""
        if self.image is not None:
            return self.image
        try:
            return Path(str(files("skimage"))) / "data" / SAMPLE
        except ImportError as error:
            raise MissingExtra("scikit-image", "demo", "the sample image of spit demo (--image takes your own)"
                               ) from error


def demo(sample: Sample, models: Models, reading: Reading, output: Output, running: Running) -> int:
    """Tokenize and classify a sample image, and make a picture, demo.png.

    The first run compiles the kernels, 15 to 30 seconds; later runs load them from the cache.
    """
    source = sample.path()
    pixels = reading.load(source)
    models.expect_one()
    [predictor] = models.load_classifiers(running.device)
    with waiting("Classifying; the first run compiles the kernels, 15-30 s"):
        seen = top_json(predictor(pixels, crop=True), 3)
    pixels = pixels.to(running.place)
    with waiting("Tokenizing; the first run compiles the kernels, 15-30 s"):
        levels, milliseconds = _measure(pixels)
    with waiting("Drawing"):
        target = output.output / "demo.png"
        write_files({target: _draw(pixels, seen)}, [source])
    document = {"image": str(source), "width": pixels.shape[2], "height": pixels.shape[1], "levels": levels,
                "milliseconds": round(milliseconds, 2), "classes": seen, "picture": str(target)}
    if running.as_json:
        print_json(document)
    else:
        _show(document)
    return 0


def _measure(pixels: Tensor) -> tuple[list[dict[str, int]], float]:
    """Regions at each level, and the median time to the last in milliseconds."""
    tokenizer = SuperpixelTokenizer(levels=LEVELS)
    counts = tokenizer.hierarchy(pixels).counts[1:, 0].tolist()
    levels = [{"level": level, "regions": regions} for level, regions in enumerate(counts, start=1)]
    return levels, median_ms(partial(tokenizer, pixels), pixels.device, REPEATS)


def _draw(pixels: Tensor, seen: list[dict[str, Any]]) -> bytes:
    """Top: one image under three tokenizers. Bottom: the hierarchy from fine to coarse."""
    hierarchy = SuperpixelTokenizer(levels=LEVELS).hierarchy(pixels)
    count = int(hierarchy.counts[-1, 0])
    thickness = -(-max(pixels.shape[1:]) // LARGEST)  # a line that is still one pixel once the picture is shrunk
    partitions = {"Square patches": PatchTokenizer(16)(pixels), "Voronoi cells": VoronoiTokenizer(count)(pixels),
                  "Superpixels": hierarchy[-1]}
    above = [Tile(as_picture(pixels), "Image", f"{seen[0]['name']}, {seen[0]['probability']:.0%}")]
    above += [Tile(draw_overlay(pixels, partition, thickness), name, f"{int(partition.counts[0]):,} tokens")
              for name, partition in partitions.items()]
    below = [Tile(draw_mean_colors(pixels, hierarchy[level]), f"Level {level}",
                  f"{int(hierarchy.counts[level, 0]):,} regions, mean colours") for level in range(1, LEVELS + 1)]
    note = "Tokens that follow the image: three ways to cut it, and the hierarchy of superpixels"
    return encode_png(draw_panel([above, below], "Superpixel tokens", note))


def _show(document: dict[str, Any]) -> None:
    console = answers()
    console.print(Text(f"{shown(Path(document['image']).name)}, {document['width']} × {document['height']} pixels"))
    table = Table(box=None, header_style="bold")
    for column in ("level", "regions"):
        table.add_column(column, justify="right")
    for row in document["levels"]:
        table.add_row(str(row["level"]), f"{row['regions']:,}")
    console.print(table)
    console.print(f"{document['milliseconds']:.1f} ms to the last level, the median of {REPEATS} runs")
    console.print(top_table(document["classes"]))
    console.print(Text(f"The picture is {shown(document['picture'])}", style="bold green"))
