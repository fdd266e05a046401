"""``spit segment``: the salient object of images, cut out."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from spit import __version__
from spit.cli.console import Say, show
from spit.cli.inputs import Input, answer_each, find_inputs, show_files
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.cli.outputs import read_about
from spit.drawing import encode_png
from spit.drawing.pictures import as_picture
from spit.errors import Stopped
from spit.evaluation.runner import case_of
from spit.options import Options, option
from spit.segmentation import Cut, Segmentation, segment_prediction
from spit.tokens import plural

# The name of each kind in a file: NAME.overlay.png is spit tokenize's, in the same folder by default.
KINDS = {"mask": "mask.png", "cutout": "cutout.png", "overlay": "mask-overlay.png", "saliency": "saliency.png"}
ABOUT = "segment.json"


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
    inputs = find_inputs(images, output.output)
    predictor = models.load_one(running.device, tokenizer)
    cut.layer_of(predictor.model.config.depth)  # now, rather than for every image
    settings = {"model": predictor.digest, "config": predictor.model.config.to_dict(), "cut": cut.to_dict(),
                "size": models.size, "spit": __version__}
    kept: list[str] = []

    def work(item: Input, _: Say) -> dict[str, Any]:
        key, known = _key(item.path, settings), read_about(item.folder / item.name(ABOUT))
        if not repeating.again and key is not None and known.get("key") == key and all(
                (item.folder / file).is_file() for file in known["files"].values()):
            kept.append(str(item.path))
            return known
        image = reading.load(item.path)
        found = segment_prediction(predictor(image, crop=False, size=models.size), cut)
        return item.write(ABOUT, {
            "width": image.shape[2], "height": image.shape[1], "key": key, "model": predictor.name,
            "tokens": int(found.partition.counts[0]), "foreground": round(float(found.mask[0].float().mean()), 6),
            "tau": float(found.tau[0]), "settings": settings}, _draw(image, found))

    def show_all(documents: list[dict[str, Any]]) -> None:
        show_files(documents, output.output, ("tokens", "foreground"), lambda document: (
            f"{document['tokens']:,}", f"{document['foreground']:.1%}"))
        empty = sum(document["foreground"] == 0 for document in documents)
        if empty:
            show(f"{plural(empty, 'image')} without a foreground: nothing to cut")
        if kept:
            show(f"{len(kept)} of {len(documents)} were done earlier with these settings; --again repeats them")

    try:
        return answer_each(inputs, "Segmenting", work, show_all, running.as_json, output=str(output.output),
                           done_earlier=kept)
    except KeyboardInterrupt:
        raise Stopped("stopped; the same command continues with the remaining images") from None


def _draw(image: Tensor, found: Segmentation) -> dict[str, tuple[str, bytes]]:
    """The four pictures of one image by their kind, each with the end of its name."""
    pixels = np.asarray(as_picture(image))
    mask = found.mask[0].cpu().numpy()
    white, inside = mask.astype(np.uint8) * 255, mask[:, :, None]
    cutout = np.dstack([np.where(inside, pixels, 0), white])  # nothing hides beneath alpha 0
    dimmed = np.where(inside, pixels, pixels // 4)
    soft = np.rint(found.saliency[0].cpu().numpy() * 255).astype(np.uint8)
    return {kind: (suffix, encode_png(Image.fromarray(drawn)))
            for (kind, suffix), drawn in zip(KINDS.items(), (white, cutout, dimmed, soft), strict=True)}


def _key(path: Path, settings: dict[str, Any]) -> str | None:
    """A hash of a file's bytes and the settings; None if it cannot be read, which loading it will report."""
    try:
        return case_of(content=hashlib.sha256(path.read_bytes()).hexdigest(), **settings)
    except OSError:
        return None
