"""``spit tokenize --tiles`` for one image."""

from dataclasses import dataclass

import numpy as np

from spit.cli.console import Say
from spit.cli.inputs import Document, Input
from spit.cli.results import Results
from spit.cli.tokenize import Tiling
from spit.tiles.run import superpixels_tiled
from spit.tiles.sources import open_source


@dataclass(frozen=True)
class TiledWork:
    """Labels the superpixels of an image that does not fit in memory."""

    regions: int
    tiling: Tiling
    results: Results

    def __call__(self, item: Input, say: Say) -> Document:
        source = open_source(item.path, axes=self.tiling.axes)
        suffix = f"labels{item.path.suffix.lower()}"
        path = self.results.place(item, suffix)
        superpixels_tiled(source, self.regions, tile=self.tiling.tiles, to=self.tiling.to, out=path,
                          progress=lambda done, total: say(f"{item.stem}: {done:,} of {total:,} steps"))
        labels, sizes = open_source(path, None), np.zeros(1, np.int64)
        for first in range(0, labels.shape[0], rows := max(2**24 // int(np.prod(labels.shape[1:])), 1)):
            strip = labels.read((slice(first, first + rows), *[slice(None)] * (len(labels.shape) - 1)))
            counts = np.bincount(strip.ravel(), minlength=len(sizes))
            counts[: len(sizes)] += sizes
            sizes = counts
        sizes = sizes[1:]
        return self.results.write(item, {
            "width": labels.shape[-1], "height": labels.shape[-2], "shape": labels.shape, "tokenizer": "superpixels",
            "options": {"n": self.regions}, "regions": len(sizes),
            "region_size": {"min": int(sizes.min()), "mean": float(sizes.mean()), "max": int(sizes.max())},
            "labels_encoding": "int32"}, {}, {"labels": suffix})
