"""``spit segment``: the salient object of images, cut out."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from spit import __version__
from spit.cli.claims import Shared
from spit.cli.companions import Sharing
from spit.cli.console import Say, show, shown
from spit.cli.inputs import Input, answer_each, find_inputs, show_files
from spit.cli.options import Images, Merging, Models, Output, Reading, Running, TokenizerChoice
from spit.data.images import header_size
from spit.devices import Precise, autocast
from spit.drawing import draw_mask, encode_png
from spit.drawing.pictures import as_picture
from spit.options import Options, option
from spit.predictor import ALONE, SEEN
from spit.segmentation import Cut, Segmentation, looking, segment_prediction
from spit.segmentation.head import head_for
from spit.tokens import plural

# The name of each kind in a file: NAME.overlay.png is spit tokenize's, in the same folder by default.
KINDS = {"mask": "mask.png", "cutout": "cutout.png", "overlay": "mask-overlay.png", "saliency": "saliency.png"}
ABOUT = "segment.json"


@dataclass(frozen=True)
class Repeating(Options):
    """Whether finished work is done again."""

    again: bool = option(False, "Process images again that an earlier run with these settings finished")


def segment(images: Images, models: Models, tokenizer: TokenizerChoice, cut: Cut, repeating: Repeating,
            reading: Reading, merging: Merging, precise: Precise, sharing: Sharing, output: Output,
            running: Running) -> int:
    """Cut the salient object out of images, with the tokens of a classifier alone.

    For cat.jpg: cat.mask.png (white on black), cat.cutout.png (transparent outside the object), cat.mask-overlay.png
    (outlined, the rest pale), cat.saliency.png (the soft map in grey) and cat.segment.json. Images of
    more than 262,144 pixels (512 × 512) are reduced to that many for the model; the mask comes back along
    superpixels of the original. Folders keep their structure. A second run skips images that are done with the same
    model and settings; --again repeats them. A folder that holds other images' files, made with other options, is
    refused. An image that cannot be read is reported, the others go on, and the exit code is 2.
    """
    inputs = find_inputs(images, output.output)
    predictor = models.load_one(running.device, tokenizer)
    cut.layer_of(predictor.model.config.depth)  # now, rather than for every image
    head = head_for(predictor, cut.method, cut.token_head)
    predictor = looking(predictor, cut, merging.merge)
    precision = precise.precision or "fp32"
    autocast(predictor.device, precision)  # refuses now what it cannot do
    given = head.digest if head and cut.token_head else None  # spit's own head follows from the model and the version
    settings = {"verb": "segment", "model": predictor.digest, "config": predictor.model.config.to_dict(),
                "cut": {**cut.to_dict(), "token_head": given},
                "size": models.size, "merge": predictor.model.config.backbone == "merging",
                "precision": precision, "spit": __version__}
    shared = Shared(inputs, ABOUT, settings, earlier=not repeating.again)

    def work(item: Input, say: Say) -> dict[str, Any]:
        doing = f"Segmenting {shown(item.path.name)}:"
        say(f"{doing} reading the file")
        image = reading.load(item.path)
        say(f"{doing} cutting it into tokens (the first run compiles)")
        with autocast(predictor.device, precision):
            prediction = predictor(image, crop=False, size=models.size)
        say(f"{doing} finding the object")
        found = segment_prediction(prediction, cut)
        say(f"{doing} drawing")
        return item.write(ABOUT, {
            "width": image.shape[2], "height": image.shape[1], "seen": list(prediction.images[0].shape[:0:-1]),
            **shared.about_run(item), "model": predictor.name,
            "tokens": int(found.partition.counts[0]), "foreground": round(float(found.mask[0].float().mean()), 6),
            "tau": None if found.tau[0].isnan() else float(found.tau[0])}, _draw(image, found))

    def alone(item: Input) -> bool:  # a large one needs the memory, and fills the threads
        return predictor.device.type not in ALONE or prod(header_size(item.path)) > SEEN

    def show_all(documents: list[dict[str, Any]]) -> None:
        show_files(documents, output.output, ("tokens", "foreground"), lambda document: (
            f"{document['tokens']:,}", f"{document['foreground']:.1%}"))
        empty = sum(document["foreground"] == 0 for document in documents)
        if empty:
            show(f"{plural(empty, 'image')} without a foreground: nothing to cut")
        others = {*shared.taken, *(() if sharing.workers else shared.elsewhere)}
        reduced = sum(document["seen"] != [document["width"], document["height"]] for document in documents
                      if document["image"] not in others)
        if reduced and models.size is None:
            show(f"{plural(reduced, 'image')} {'was' if reduced == 1 else 'were'} reduced to {SEEN:,} pixels "
                 f"(as many as 512 × 512) for the model; --size SIDE asks for more")
        if shared.taken:
            show(f"{len(shared.taken)} of {len(documents)} were done earlier with these settings; --again repeats them")

    return answer_each(inputs, "Segmenting", work, show_all, running.as_json, shared, sharing.workers, alone,
                       output=str(output.output), done_earlier=shared.taken)


def _draw(image: Tensor, found: Segmentation) -> dict[str, tuple[str, bytes]]:
    """The four pictures of one image by their kind, each with the end of its name."""
    pixels = np.asarray(as_picture(image))
    mask = found.mask[0].cpu().numpy()
    white = mask.astype(np.uint8) * 255
    cutout = np.dstack([np.where(mask[:, :, None], pixels, np.uint8(0)), white])  # nothing hides beneath alpha 0
    soft = np.rint(found.saliency[0].cpu().numpy() * 255).astype(np.uint8)
    drawn = (Image.fromarray(white), Image.fromarray(cutout), draw_mask(image, mask), Image.fromarray(soft))
    with ThreadPoolExecutor(len(drawn)) as pool:  # large ones take seconds to compress
        return {kind: (suffix, data) for (kind, suffix), data in zip(
            KINDS.items(), pool.map(encode_png, drawn), strict=True)}
