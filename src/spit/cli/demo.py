"""``spit demo``: one picture that shows what spit does."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from spit.cli.classify import guess_table
from spit.cli.console import answers, print_json, shown, waiting
from spit.cli.options import (
    DEFAULT_MODEL,
    AsJson,
    Device,
    OutputFolder,
    OwnSize,
    Reading,
    TokenizerOptions,
    Weights,
    choose_device,
)
from spit.cli.outputs import write_files
from spit.errors import MissingExtra

SAMPLE = "chelsea.png"  # a cat, as scikit-image ships it
LEVELS = 4
REPEATS = 5

OwnImage = Annotated[Path | None, typer.Option("--image", metavar="IMG", show_default=False,
                                               help="Your image instead of the sample.")]


def demo(reading: Reading, output: OutputFolder = Path("spit-output"), image: OwnImage = None, weights: Weights = None,
         image_size: OwnSize = None, device: Device = "cpu", as_json: AsJson = False) -> int:
    """Tokenize a sample image, classify it where there are weights, and make a picture, demo.png.

    The first run compiles the kernels, 15 to 30 seconds; later runs find them compiled.
    """
    place = choose_device(device)
    if output.exists() and not output.is_dir():
        raise ValueError(f"expected a folder for --output, got the file {shown(output)}")
    source = _sample() if image is None else image
    pixels = reading.load(source)
    seen = _classify(pixels, weights, image_size, place)  # first: bad weights are found before any compiling
    pixels = pixels.to(place)
    with waiting("Tokenizing; the first run compiles the kernels, 15-30 s"):
        levels, milliseconds = _measure(pixels)
    with waiting("Drawing"):
        target = output / "demo.png"
        write_files({target: _draw(pixels, seen)}, [source])
    document = {"image": str(source), "width": pixels.shape[2], "height": pixels.shape[1], "levels": levels,
                "milliseconds": round(milliseconds, 2), "classes": seen, "picture": str(target)}
    if as_json:
        print_json(document)
    else:
        _show(document)
    return 0


def _sample() -> Path:
    from importlib.resources import files

    try:
        path = Path(str(files("skimage"))) / "data" / SAMPLE
    except ImportError as error:
        raise MissingExtra("scikit-image", "demo", "the sample image of spit demo (--image takes your own)") from error
    return path


def _classify(pixels: Any, weights: str | None, size: int | None, device: str) -> list[dict[str, Any]] | None:
    """The likeliest classes; None where no weights were given and none come with spit."""
    from spit.cli.models import as_json, choose_size, embedded, guess, load_classifier

    if weights is None and not embedded(DEFAULT_MODEL):
        return None
    with waiting("Classifying; the first run compiles the kernels, 15-30 s"):
        model = load_classifier(weights, None, TokenizerOptions(), device)
        return as_json(guess(model, pixels, choose_size(size, {DEFAULT_MODEL: model}), 3)[0])


def _measure(pixels: Any) -> tuple[list[dict[str, int]], float]:
    """Regions at each level, and the milliseconds to the last, the median of a few runs."""
    from spit.bench.timing import median_ms
    from spit.tokenizers import SuperpixelTokenizer

    cut = SuperpixelTokenizer(levels=LEVELS)
    counts = cut.hierarchy(pixels).counts[1:, 0].tolist()
    levels = [{"level": level, "regions": regions} for level, regions in enumerate(counts, start=1)]
    return levels, median_ms(partial(cut, pixels), pixels.device, REPEATS)


def _draw(pixels: Any, seen: list[dict[str, Any]] | None) -> bytes:
    """Above, one image under three tokenizers; below, the hierarchy from fine to coarse."""
    from spit.drawing import Tile, draw_mean_colors, draw_overlay, draw_panel, encode_png
    from spit.drawing.panel import LARGEST
    from spit.drawing.pictures import as_picture
    from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, VoronoiTokenizer

    hierarchy = SuperpixelTokenizer(levels=LEVELS).hierarchy(pixels)
    count = int(hierarchy.counts[-1, 0])
    thickness = -(-max(pixels.shape[1:]) // LARGEST)  # a line that is still one pixel once the picture is shrunk
    partitions = {"Square patches": PatchTokenizer(16)(pixels), "Voronoi cells": VoronoiTokenizer(count)(pixels),
                  "Superpixels": hierarchy[-1]}
    detail = f"{pixels.shape[2]} x {pixels.shape[1]} pixels"  # Pillow's own font has no ×
    if seen:
        detail = f"{seen[0]['name']}, {seen[0]['probability']:.0%}"
    above = [Tile(as_picture(pixels), "Image", detail)]
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
    if document["classes"] is None:
        console.print("No trained checkpoint comes with spit yet, so nothing was classified. "
                      "spit demo --weights FOLDER, owner/name or vit.safetensors classifies with yours.")
    else:
        console.print(guess_table(document["classes"]))
    console.print(Text(f"The picture is {shown(document['picture'])}", style="bold green"))
