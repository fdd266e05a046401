"""``spit tokenize`` for one image."""

import json
from collections.abc import Callable
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
        kinds, numbers = self.files.kinds, partition.blocks[0][0]
        labels, encoding = encode_labels(numbers, self.files.labels) if "labels" in kinds else (b"", None)
        made: dict[str, tuple[str, Callable[[], bytes]]] = {
            "overlay": ("overlay.png", lambda: encode_png(draw_overlay(image, partition))),
            "mean": ("mean.png", lambda: encode_png(draw_mean_colors(image, partition))),
            "labels": (f"labels.{self.files.labels}", lambda: labels),
            "colors": ("colors.png", lambda: encode_png(draw_labels(partition)))}
        if hierarchy is not None:
            made["levels"] = ("levels.png", lambda: draw_levels(image, hierarchy, options["levels"]))
        if kinds & {"table", "polygons"}:
            map_of = numbers.cpu().numpy()
            table = regions(map_of, image.movedim(0, -1).cpu().numpy(), background=None)
            made["table"] = ("csv", lambda: table.to_csv().encode())
            made["polygons"] = ("geojson", lambda: json.dumps(
                polygons(map_of, self.files.simplify, background=None).to_geojson(table)).encode())
        contents = {kind: (suffix, make()) for kind, (suffix, make) in made.items() if kind in kinds}
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
