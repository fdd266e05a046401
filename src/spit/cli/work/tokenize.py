"""``spit tokenize`` for one image."""

import json
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from spit.arrays import superpixels
from spit.cli.console import Say
from spit.cli.inputs import Document, Input
from spit.cli.options import Reading
from spit.cli.results import Results
from spit.cli.tokenize import LabelFiles
from spit.drawing import Tile, draw_labels, draw_mean_colors, draw_overlay, draw_panel, encode_labels, encode_png
from spit.labels.polygons import polygons
from spit.labels.regions import regions
from spit.partition import Hierarchy, Partition
from spit.tokenizers import NestedTokenizer, Tokenizer


@dataclass(frozen=True)
class ExactSuperpixels(Tokenizer):
    """:func:`spit.superpixels` of each image."""

    n: int

    def partition(self, block: Tensor) -> Partition:
        labels = [superpixels(image.movedim(0, -1).numpy(), self.n, start_label=0) for image in block.cpu()]
        return Partition.from_labels(torch.from_numpy(np.stack(labels)).to(block.device))


@dataclass(frozen=True)
class TokenizeWork:
    """Cuts an image into tokens, and writes its files."""

    tokenizer: Tokenizer
    name: str
    files: LabelFiles
    reading: Reading
    device: str
    results: Results

    def __call__(self, item: Input, _: Say) -> Document:
        image = self.reading.load(item.path).to(self.device)
        hierarchy = self.tokenizer.hierarchy(image) if isinstance(self.tokenizer, NestedTokenizer) else None
        partition = self.tokenizer(image) if hierarchy is None else hierarchy[-1]
        options = self.tokenizer.config()
        labels, encoding = encode_labels(partition.blocks[0][0], self.files.labels)
        contents = {"overlay": ("overlay.png", encode_png(draw_overlay(image, partition))),
                    "mean": ("mean.png", encode_png(draw_mean_colors(image, partition))),
                    "labels": (f"labels.{self.files.labels}", labels),
                    "colors": ("colors.png", encode_png(draw_labels(partition)))}
        if self.files.levels_strip and hierarchy is not None:
            contents["levels"] = ("levels.png", draw_levels(image, hierarchy, options["levels"]))
        if self.files.table or self.files.polygons:
            numbers = partition.blocks[0][0].cpu().numpy()
            table = regions(numbers, image.movedim(0, -1).cpu().numpy(), background=None)
            if self.files.table:
                contents["table"] = ("csv", table.to_csv().encode())
            if self.files.polygons:
                outlines = polygons(numbers, self.files.simplify, background=None)
                contents["polygons"] = ("geojson", json.dumps(outlines.to_geojson(table)).encode())
        sizes = partition.sizes()
        return self.results.write(item, {
            "width": image.shape[2], "height": image.shape[1], "tokenizer": self.name,
            "options": options, "regions": int(partition.counts[0]),
            "regions_per_level": None if hierarchy is None else hierarchy.counts[1:, 0].tolist(),
            "region_size": {"min": int(sizes.min()), "mean": float(sizes.double().mean()), "max": int(sizes.max())},
            "labels_encoding": encoding}, contents)


def draw_levels(image: Tensor, hierarchy: Hierarchy, levels: int) -> bytes:
    """Every level in mean colours; a merged or bounded one comes after the last."""
    tiles = [Tile(draw_mean_colors(image, hierarchy[level]), f"Level {level}" if level <= levels else "Merged",
                  f"{int(hierarchy.counts[level, 0]):,} regions") for level in range(1, len(hierarchy))]
    return encode_png(draw_panel([tiles]))
