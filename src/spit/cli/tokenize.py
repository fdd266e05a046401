"""``spit tokenize``: images to regions, as pictures, label maps and counts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from spit.cli.console import Say, answers, print_json, shown
from spit.cli.inputs import Input, find_inputs, for_each
from spit.cli.options import AsJson, Device, Images, OutputFolder, Reading, TokenizerOptions, choose_device
from spit.cli.outputs import write_about

if TYPE_CHECKING:
    from spit.partition import Hierarchy, Partition
    from spit.tokenizers import Tokenizer

LabelFormat = Annotated[str, typer.Option(
    "--labels", metavar="png|npz",
    help="The label map as PNG (16-bit grey up to 65,536 regions; beyond, 32-bit colour: label = R + 256 G + "
         "65536 B + 16777216 (255 - A)) or as NPZ with the array 'labels'; spit.drawing.read_labels reads both.")]
Strip = Annotated[bool, typer.Option("--levels-strip", help="Also write IMG.levels.png: every level side by side.")]


def tokenize(images: Images, tokenizer: TokenizerOptions, reading: Reading,
             output: OutputFolder = Path("spit-output"), labels: LabelFormat = "png", levels_strip: Strip = False,
             device: Device = "cpu", as_json: AsJson = False) -> int:
    """Cut images into tokens and write what came of it.

    For cat.jpg: cat.overlay.png (boundaries), cat.mean.png (mean colours), cat.labels.png or .npz (the
    region of every pixel, exactly) and cat.json (sizes, options, counts). Folders keep their structure.
    Files of an earlier run are replaced, an image you gave never. An image that cannot be read is named,
    the others go on, and the exit code is 2.
    """
    cut = tokenizer.build()
    if labels not in ("png", "npz"):
        raise ValueError(f"expected --labels png or npz, got {labels!r}")
    if levels_strip and not hasattr(cut, "hierarchy"):
        raise ValueError("--levels-strip shows the levels of superpixels; leave --tokenizer out")
    place = choose_device(device)
    inputs = find_inputs(images, output)
    given = [item.path for item in inputs]

    def work(item: Input, _: Say) -> dict[str, Any]:
        contents, document = _describe(item, reading, tokenizer.name(), cut, labels, levels_strip, place)
        write_about(output / f"{item.stem}.json", document,
                    {output / name: data for name, data in contents.items()}, given)
        return document

    outcome = for_each(inputs, "Tokenizing", work)
    if as_json:
        print_json({"output": str(output), "images": outcome.answers, "failed": outcome.failures()})
    elif outcome.answers:
        _show(outcome.answers, output)
    return outcome.code


def _describe(item: Input, reading: Reading, name: str, cut: "Tokenizer", labels: str, strip: bool,
              device: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Every picture and label map to be written about one image, below the output folder, and its JSON."""
    from spit import __version__
    from spit.drawing import draw_mean_colors, draw_overlay, encode_labels, encode_png
    from spit.tokenizers import SuperpixelTokenizer

    image = reading.load(item.path).to(device)
    hierarchy = cut.hierarchy(image) if isinstance(cut, SuperpixelTokenizer) else None
    partition = cut(image) if hierarchy is None else hierarchy[-1]
    label_data, encoding = encode_labels(partition.blocks[0][0], "npz" if labels == "npz" else "png")
    contents = {
        "overlay": (f"{item.stem}.overlay.png", encode_png(draw_overlay(image, partition))),
        "mean": (f"{item.stem}.mean.png", encode_png(draw_mean_colors(image, partition))),
        "labels": (f"{item.stem}.labels.{labels}", label_data),
    }
    if strip and hierarchy is not None and isinstance(cut, SuperpixelTokenizer):
        contents["levels"] = (f"{item.stem}.levels.png", encode_png(_strip(image, hierarchy, cut.levels)))
    document = {
        "image": str(item.path),
        "width": image.shape[2],
        "height": image.shape[1],
        "tokenizer": name,
        "options": cut.config(),
        **_counts(partition, hierarchy),
        "labels_encoding": encoding,
        "files": {kind: file for kind, (file, _) in contents.items()},
        "spit": __version__,
    }
    return dict(contents.values()), document


def _counts(partition: "Partition", hierarchy: "Hierarchy | None") -> dict[str, Any]:
    sizes = partition.sizes()
    return {
        "regions": int(partition.counts[0]),
        "regions_per_level": None if hierarchy is None else hierarchy.counts[1:, 0].tolist(),
        "region_size": {"min": int(sizes.min()), "mean": float(sizes.double().mean()), "max": int(sizes.max())},
    }


def _strip(image: Any, hierarchy: "Hierarchy", levels: int) -> Any:
    """Every level in mean colours; what a threshold or a bound merged comes after the last."""
    from spit.drawing import Tile, draw_mean_colors, draw_panel

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
