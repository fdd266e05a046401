"""``spit tokenize``: images to regions, as pictures, label maps and counts."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spit import __version__
from spit.arrays import superpixels
from spit.cli.claims import Shared
from spit.cli.companions import Sharing
from spit.cli.console import Say, show, shown
from spit.cli.inputs import Input, answer_each, find_inputs, show_files
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.config import ModelConfig
from spit.drawing import Tile, draw_labels, draw_mean_colors, draw_overlay, draw_panel, encode_labels, encode_png
from spit.drawing.labels import LabelFormat
from spit.options import Options, option, same
from spit.partition import Hierarchy, Partition
from spit.parts import TOKENIZERS
from spit.tokenizers import SuperpixelTokenizer, Tokenizer


@dataclass(frozen=True)
class LabelFiles(Options):
    """What is written beside the pictures."""

    labels: LabelFormat = option(
        "png", "Label map as PNG (16-bit grey up to 65,536 regions; beyond, 32-bit colour: label = R + 256 G + 65536 B "
               "+ 16777216 (255 - A)) or as NPZ with the array 'labels'; spit.drawing.read_labels reads both")
    levels_strip: bool = option(False, "Also write IMG.levels.png: every level side by side")


@dataclass(frozen=True)
class TokensOf(Options):
    """Whose tokens."""

    model: tuple[str, ...] = same(Models, "model", ())
    regions: int | None = option(None, "Exactly this many superpixels, or one for each pixel if there are fewer, as "
                                       "spit.superpixels makes them, in place of --model and --tokenizer", least=1)

    def config(self) -> ModelConfig | None:
        """The config of the model that is named, if one is."""
        return Models(self.model).load_one("cpu").model.config if self.model else None

    def tokenizer(self, choice: TokenizerChoice) -> Tokenizer:
        """The tokenizer that was asked for."""
        if self.regions is None:
            return choice.build(self.config())
        others = [*(["model"] if self.model else []), *choice.given]
        if others:
            raise ValueError(f"--regions and --{others[0].replace('_', '-')} exclude each other; leave one out")
        return ExactSuperpixels(self.regions)


@dataclass(frozen=True)
class ExactSuperpixels(Tokenizer):
    """:func:`spit.superpixels` of each image."""

    n: int

    def partition(self, block: Tensor) -> Partition:
        labels = [superpixels(image.movedim(0, -1).numpy(), self.n, start_label=0) for image in block.cpu()]
        return Partition.from_labels(torch.from_numpy(np.stack(labels)).to(block.device))


def tokenize(images: Images, tokens_of: TokensOf, tokenizer: TokenizerChoice, files: LabelFiles, reading: Reading,
             sharing: Sharing, output: Output, running: Running) -> int:
    """Cut images into tokens, and write pictures and label maps.

    Without --model these are the paper's superpixels, which are not the tokens of spit_tiny_16; --model spit_tiny_16
    takes a model's own tokenizer and options. Options of --tokenizer change them; --max-tokens is an upper bound.
    --regions 300 makes exactly 300 superpixels. The whole image is cut, at its own
    pixels; classify and explain see its central square at the model's size, and so fewer tokens.

    For cat.jpg: cat.overlay.png (boundaries), cat.mean.png (mean colours), cat.labels.png or .npz (the region of every
    pixel), cat.colors.png (the regions in colours, to look at) and cat.json (sizes, options, counts). Folders keep
    their structure. A second run processes all images again and replaces their files; the images you give are never
    replaced. A folder that holds other images' files, made with other options, is refused. An image that cannot be read
    is reported, the others go on, and the exit code is 2. Processes that run at the same time share the work.
    """
    chosen, place = tokens_of.tokenizer(tokenizer), running.place
    name = TOKENIZERS.name_of(chosen) or "superpixels"
    if files.levels_strip and not isinstance(chosen, SuperpixelTokenizer):
        raise ValueError("--levels-strip shows the levels of superpixels; leave --tokenizer and --regions out")

    inputs = find_inputs(images, output.output)
    shared = Shared(inputs, "json", {"verb": "tokenize", "tokenizer": name, "options": chosen.config(),
                                     "files": files.to_dict(), "spit": __version__})

    def work(item: Input, _: Say) -> dict[str, Any]:
        image = reading.load(item.path).to(place)
        hierarchy = chosen.hierarchy(image) if isinstance(chosen, SuperpixelTokenizer) else None
        partition = chosen(image) if hierarchy is None else hierarchy[-1]
        labels, encoding = encode_labels(partition.blocks[0][0], files.labels)
        contents = {"overlay": ("overlay.png", encode_png(draw_overlay(image, partition))),
                    "mean": ("mean.png", encode_png(draw_mean_colors(image, partition))),
                    "labels": (f"labels.{files.labels}", labels),
                    "colors": ("colors.png", encode_png(draw_labels(partition)))}
        if files.levels_strip and hierarchy is not None:
            contents["levels"] = ("levels.png", _draw_levels(image, hierarchy, chosen.config()["levels"]))
        sizes = partition.sizes()
        return item.write("json", {
            "width": image.shape[2], "height": image.shape[1], "tokenizer": name,
            "options": chosen.config(), "regions": int(partition.counts[0]),
            "regions_per_level": None if hierarchy is None else hierarchy.counts[1:, 0].tolist(),
            "region_size": {"min": int(sizes.min()), "mean": float(sizes.double().mean()), "max": int(sizes.max())},
            "labels_encoding": encoding, **shared.about_run(item)}, contents)

    def show_all(documents: list[dict[str, Any]]) -> None:
        show_files(documents, output.output, ("regions", "mean pixels"), lambda document: (
            f"{document['regions']:,}", f"{document['region_size']['mean']:,.0f}"))
        show(_told(chosen, name, *tokens_of.model))

    return answer_each(inputs, "Tokenizing", work, show_all, running.as_json, shared, sharing.workers,
                       output=str(output.output))


def _told(tokenizer: Tokenizer, name: str, model: str | None = None) -> str:
    """Which tokens these are, with the options that differ from the defaults."""
    values = ((item, getattr(tokenizer, item.name)) for item in fields(tokenizer))
    changed = ", ".join(f"{item.name}={value}" for item, value in values if value != item.default)
    source = f"from {shown(model)}" if model else "without a model; --model NAME takes those of a model"
    return f"Tokens: {name}{f' with {changed}' if changed else ''}, {source}"


def _draw_levels(image: Tensor, hierarchy: Hierarchy, levels: int) -> bytes:
    """Every level in mean colours; a merged or bounded one comes after the last."""
    tiles = [Tile(draw_mean_colors(image, hierarchy[level]), f"Level {level}" if level <= levels else "Merged",
                  f"{int(hierarchy.counts[level, 0]):,} regions") for level in range(1, len(hierarchy))]
    return encode_png(draw_panel([tiles]))
