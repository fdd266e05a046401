"""``spit segment``: the salient object of images, cut out."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from spit.cli.classify import ModelName
from spit.cli.console import Say, answers, print_json, shown, waiting
from spit.cli.cutting import Cutting, load_model
from spit.cli.inputs import Input, find_inputs, for_each
from spit.cli.options import AsJson, Device, Images, OutputFolder, Reading, TokenizerOptions, Weights, choose_device
from spit.cli.outputs import read_about, write_about

if TYPE_CHECKING:
    from spit.segmentation.saliency import Segmentation

Again = Annotated[bool, typer.Option("--again", help="Also do images that an earlier run with these settings did.")]
# each kind by its name in a file: NAME.overlay.png is spit tokenize's, in the same folder unless told
KINDS = {"mask": "mask", "cutout": "cutout", "overlay": "mask-overlay", "saliency": "saliency"}


def segment(images: Images, cutting: Cutting, tokenizer: TokenizerOptions, reading: Reading,
            output: OutputFolder = Path("spit-output"), weights: Weights = None, model: ModelName = None,
            again: Again = False, device: Device = "cpu", as_json: AsJson = False) -> int:
    """Cut the salient object out of images, with the tokens of a classifier alone.

    For cat.jpg: cat.mask.png (white on black), cat.cutout.png (transparent beyond the object), cat.mask-overlay.png
    (the rest dimmed), cat.saliency.png (the soft map in grey) and cat.segment.json. Folders keep their structure. What
    an earlier run with the same model and settings has written is not done again. An image that cannot be read is
    named, the others go on, and the exit code is 2.
    """
    place = choose_device(device)
    cut = cutting.cut()
    inputs = find_inputs(images, output)
    given = [item.path for item in inputs]
    with waiting("Loading the model"):
        from spit import __version__
        from spit.cli.models import called
        from spit.evaluation.answers import Subject
        from spit.evaluation.lines import case_of
        from spit.segmentation.saliency import segment_with
        from spit.training.errors import Stopped

        loaded = load_model(weights, model, tokenizer, place)
        cut.layer_of(loaded.config.depth)  # rather now than for every image
        subject = Subject.of("", loaded)
    case = case_of(model=subject.digest, config=loaded.config.to_dict(), cut=asdict(cut), spit=__version__)

    kept: list[Path] = []

    def work(item: Input, _: Say) -> dict[str, Any]:
        about = output / f"{item.stem}.segment.json"
        known = None if again else _earlier(item, about, output, case)
        if known is not None:
            kept.append(item.path)
            return known
        image = reading.load(item.path)
        found = segment_with(loaded, image.to(place), cut)
        contents = {kind: (f"{item.stem}.{KINDS[kind]}.png", data) for kind, data in draw(image, found).items()}
        document = {
            "image": str(item.path), "width": image.shape[2], "height": image.shape[1],
            "modified": item.path.stat().st_mtime_ns, "model": called(weights, model),
            "tokens": int(found.partition.counts[0]), "foreground": round(float(found.mask[0].float().mean()), 6),
            "cut": {**asdict(cut), "tau": float(found.tau[0])},
            "files": {kind: file for kind, (file, _) in contents.items()}, "case": case, "spit": __version__}
        write_about(about, document, {output / file: data for file, data in contents.values()}, given)
        return document

    try:
        outcome = for_each(inputs, "Segmenting", work)
    except KeyboardInterrupt:
        raise Stopped("stopped; the same command goes on with the images that are left") from None
    if as_json:
        print_json({"output": str(output), "images": outcome.answers, "done_earlier": [str(path) for path in kept],
                    "failed": outcome.failures()})
    elif outcome.answers:
        _show(outcome.answers, output, len(kept))
    return outcome.code


def draw(image: Any, found: "Segmentation") -> dict[str, bytes]:
    """The four pictures of one image as PNG files, by their kind."""
    import numpy as np
    from PIL import Image

    from spit.drawing import encode_png
    from spit.drawing.pictures import as_picture

    picture = as_picture(image)
    mask = found.mask[0].cpu().numpy()
    white = mask.astype(np.uint8) * 255
    pixels = np.asarray(picture)
    cutout = Image.fromarray(np.dstack([np.where(mask[:, :, None], pixels, 0), white]))  # nothing hides beneath alpha 0
    dimmed = np.where(mask[:, :, None], pixels, pixels // 4)
    soft = np.rint(found.saliency[0].cpu().numpy() * 255).astype(np.uint8)
    pictures = (Image.fromarray(white), cutout, Image.fromarray(dimmed), Image.fromarray(soft))
    return {kind: encode_png(drawn) for kind, drawn in zip(KINDS, pictures, strict=True)}


def _earlier(item: Input, about: Path, output: Path, case: str) -> dict[str, Any] | None:
    """What an earlier run said of this very file with these settings, where all it wrote is still there."""
    document = read_about(about)
    try:
        same = (document["case"], document["image"], document["modified"]) == (
            case, str(item.path), item.path.stat().st_mtime_ns)
        files = [output / file for file in document["files"].values()]
    except (OSError, KeyError, TypeError, AttributeError):
        return None
    return document if same and len(files) == len(KINDS) and all(file.is_file() for file in files) else None


def _show(documents: list[dict[str, Any]], output: Path, kept: int) -> None:
    from spit.tokens import plural

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
        console.print(Text(f"{plural(empty, 'image')} had nothing to cut: no foreground"))
    if kept:
        console.print(Text(f"{kept} of {len(documents)} were done earlier with these settings; --again does them too"))
