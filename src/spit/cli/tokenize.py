"""``spit tokenize``: images to regions, as pictures, label maps and counts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL.Image import Image as Picture
from rich.table import Table
from rich.text import Text
from torch import Tensor

from spit import __version__
from spit.cli.console import Say, answers, print_json, shown
from spit.cli.inputs import Input, find_inputs, for_each
from spit.cli.options import Images, Output, Reading, Running, TokenizerChoice
from spit.cli.outputs import write_about
from spit.drawing import Tile, draw_mean_colors, draw_overlay, draw_panel, encode_labels, encode_png
from spit.drawing.labels import LabelFormat
from spit.options import Options, option
from spit.partition import Hierarchy, Partition
from spit.parts import TOKENIZERS
from spit.tokenizers import SuperpixelTokenizer


@dataclass(frozen=True)
class LabelFiles(Options):
    """What is written beside the pictures."""

    labels: LabelFormat = option(
        "png", "Label map as PNG (16-bit grey up to 65,536 regions; beyond, 32-bit colour: label = R + 256 G + 65536 B "
               "+ 16777216 (255 - A)) or as NPZ with the array 'labels'; spit.drawing.read_labels reads both")
    levels_strip: bool = option(False, "Also write IMG.levels.png: every level side by side")


def tokenize(images: Images, tokenizer: TokenizerChoice, files: LabelFiles, reading: Reading, output: Output,
             running: Running) -> int:
    """Cut images into tokens, and write pictures and label maps.

    For cat.jpg: cat.overlay.png (boundaries), cat.mean.png (mean colours), cat.labels.png or .npz (the region of every
    pixel) and cat.json (sizes, options, counts). Folders keep their structure. Files of an earlier run are replaced;
    your images never are. An image that cannot be read is reported, the others go on, and the exit code is 2.
    """
    chosen, folder, place = tokenizer.build(), output.output, running.place
    name = TOKENIZERS.name_of(chosen)
    if files.levels_strip and not isinstance(chosen, SuperpixelTokenizer):
        raise ValueError("--levels-strip shows the levels of superpixels; leave --tokenizer out")
    inputs = find_inputs(images, folder)
    given = [item.path for item in inputs]

    def work(item: Input, _: Say) -> dict[str, Any]:
        image = reading.load(item.path).to(place)
        hierarchy = chosen.hierarchy(image) if isinstance(chosen, SuperpixelTokenizer) else None
        partition = chosen(image) if hierarchy is None else hierarchy[-1]
        label_data, encoding = encode_labels(partition.blocks[0][0], files.labels)
        contents = {
            "overlay": (f"{item.stem}.overlay.png", encode_png(draw_overlay(image, partition))),
            "mean": (f"{item.stem}.mean.png", encode_png(draw_mean_colors(image, partition))),
            "labels": (f"{item.stem}.labels.{files.labels}", label_data),
        }
        if files.levels_strip and hierarchy is not None and isinstance(chosen, SuperpixelTokenizer):
            contents["levels"] = (f"{item.stem}.levels.png", encode_png(_strip(image, hierarchy, chosen.levels)))
        document = {
            "image": str(item.path), "width": image.shape[2], "height": image.shape[1], "tokenizer": name,
            "options": chosen.config(), **_counts(partition, hierarchy), "labels_encoding": encoding,
            "files": {kind: file for kind, (file, _) in contents.items()}, "spit": __version__,
        }
        write_about(folder / f"{item.stem}.json", document,
                    {folder / file: data for file, data in contents.values()}, given)
        return document

    outcome = for_each(inputs, "Tokenizing", work)
    if running.as_json:
        print_json({"output": str(folder), "images": outcome.answers, "failed": outcome.failures()})
    elif outcome.answers:
        _show(outcome.answers, folder)
    return outcome.code


def _counts(partition: Partition, hierarchy: Hierarchy | None) -> dict[str, Any]:
    sizes = partition.sizes()
    return {
        "regions": int(partition.counts[0]),
        "regions_per_level": None if hierarchy is None else hierarchy.counts[1:, 0].tolist(),
        "region_size": {"min": int(sizes.min()), "mean": float(sizes.double().mean()), "max": int(sizes.max())},
    }


def _strip(image: Tensor, hierarchy: Hierarchy, levels: int) -> Picture:
    """Every level in mean colours; a merged or bounded one comes after the last."""
    tiles = [Tile(draw_mean_colors(image, hierarchy[level]), f"Level {level}" if level <= levels else "Merged",
                  f"{int(hierarchy.counts[level, 0]):,} regions") for level in range(1, len(hierarchy))]
    return draw_panel([tiles])


def _show(documents: list[dict[str, Any]], output: Path) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("image", overflow="fold")
    for column in ("width", "height", "regions", "mean pixels"):
        table.add_column(column, justify="right")
    for document in documents:
        numbers = (document["width"], document["height"], document["regions"], document["region_size"]["mean"])
        table.add_row(Text(shown(document["image"])), *(f"{number:,.0f}" for number in numbers))
    console = answers()
    console.print(table)
    console.print(Text(f"{len(documents[0]['files']) + 1} files for each image are in {shown(output)}"))
