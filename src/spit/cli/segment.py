"""``spit segment``: the salient object of images, cut out."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.table import Table
from rich.text import Text
from torch import Tensor

from spit import __version__
from spit.cli.console import Say, answers, print_json, shown
from spit.cli.inputs import Input, find_inputs, for_each
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.cli.outputs import read_about, write_about
from spit.drawing import encode_png
from spit.drawing.pictures import as_picture
from spit.errors import Stopped
from spit.options import Options, option
from spit.segmentation import Cut, Segmentation, segment_prediction
from spit.tokens import plural

# The name of each kind in a file: NAME.overlay.png is spit tokenize's, in the same folder by default.
KINDS = {"mask": "mask", "cutout": "cutout", "overlay": "mask-overlay", "saliency": "saliency"}


@dataclass(frozen=True)
class Repeating(Options):
    """Whether finished work is done again."""

    again: bool = option(False, "Also do images that an earlier run with these settings finished")


def segment(images: Images, models: Models, tokenizer: TokenizerChoice, cut: Cut, repeating: Repeating,
            reading: Reading, output: Output, running: Running) -> int:
    """Cut the salient object out of images, with the tokens of a classifier alone.

    For cat.jpg: cat.mask.png (white on black), cat.cutout.png (transparent outside the object), cat.mask-overlay.png
    (the rest dimmed), cat.saliency.png (the soft map in grey) and cat.segment.json. Folders keep their structure. An
    image that an earlier run with the same model and settings finished is skipped. An image that cannot be read is
    reported, the others go on, and the exit code is 2.
    """
    folder = output.output
    inputs = find_inputs(images, folder)
    given = [item.path for item in inputs]
    predictor = models.load_one(running.device, tokenizer)
    cut.layer_of(predictor.model.config.depth)  # now, rather than for every image
    settings = {"model": predictor.digest, "config": predictor.model.config.to_dict(), "cut": cut.to_dict(),
                "size": models.size, "spit": __version__}
    kept: list[Path] = []

    def work(item: Input, _: Say) -> dict[str, Any]:
        about = folder / f"{item.stem}.segment.json"
        content = _content(item.path)
        known = None if repeating.again else _earlier(about, folder, settings, content)
        if known is not None:
            kept.append(item.path)
            return known
        image = reading.load(item.path)
        found = segment_prediction(predictor(image, crop=False, size=models.size), cut)
        contents = {kind: (f"{item.stem}.{KINDS[kind]}.png", data) for kind, data in draw(image, found).items()}
        document = {
            "image": str(item.path), "width": image.shape[2], "height": image.shape[1], "content": content,
            "model": predictor.name, "tokens": int(found.partition.counts[0]),
            "foreground": round(float(found.mask[0].float().mean()), 6), "tau": float(found.tau[0]),
            "files": {kind: file for kind, (file, _) in contents.items()}, "settings": settings}
        write_about(about, document, {folder / file: data for file, data in contents.values()}, given)
        return document

    try:
        outcome = for_each(inputs, "Segmenting", work)
    except KeyboardInterrupt:
        raise Stopped("stopped; the same command continues with the remaining images") from None
    if running.as_json:
        print_json({"output": str(folder), "images": outcome.answers, "done_earlier": [str(path) for path in kept],
                    "failed": outcome.failures()})
    elif outcome.answers:
        _show(outcome.answers, folder, len(kept))
    return outcome.code


def draw(image: Tensor, found: Segmentation) -> dict[str, bytes]:
    """The four pictures of one image as PNG files, by their kind."""
    picture = as_picture(image)
    mask = found.mask[0].cpu().numpy()
    white = mask.astype(np.uint8) * 255
    pixels = np.asarray(picture)
    cutout = Image.fromarray(np.dstack([np.where(mask[:, :, None], pixels, 0), white]))  # nothing hides beneath alpha 0
    dimmed = np.where(mask[:, :, None], pixels, pixels // 4)
    soft = np.rint(found.saliency[0].cpu().numpy() * 255).astype(np.uint8)
    pictures = (Image.fromarray(white), cutout, Image.fromarray(dimmed), Image.fromarray(soft))
    return {kind: encode_png(drawn) for kind, drawn in zip(KINDS, pictures, strict=True)}


def _content(path: Path) -> str | None:
    """A hash of a file's bytes; None if it cannot be read, which loading it will report."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError:
        return None


def _earlier(about: Path, output: Path, settings: dict[str, Any], content: str | None) -> dict[str, Any] | None:
    """The document of an earlier run on the same bytes with the same settings, if all its files still exist."""
    document = read_about(about)
    try:
        same = content is not None and document["content"] == content
        same = same and document["settings"] == json.loads(json.dumps(settings))
        files = [output / file for file in document["files"].values()]
    except (KeyError, TypeError, AttributeError):
        return None
    return document if same and len(files) == len(KINDS) and all(file.is_file() for file in files) else None


def _show(documents: list[dict[str, Any]], output: Path, kept: int) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("image", overflow="fold")
    for column in ("width", "height", "tokens", "foreground"):
        table.add_column(column, justify="right")
    for document in documents:
        table.add_row(Text(shown(document["image"])), *(f"{document[key]:,}" for key in ("width", "height", "tokens")),
                      f"{document['foreground']:.1%}")
    console = answers()
    console.print(table)
    console.print(Text(f"{len(KINDS) + 1} files for each image are in {shown(output)}"))
    empty = sum(document["foreground"] == 0 for document in documents)
    if empty:
        console.print(Text(f"{plural(empty, 'image')} without a foreground: nothing to cut"))
    if kept:
        console.print(Text(f"{kept} of {len(documents)} were done earlier with these settings; --again repeats them"))
