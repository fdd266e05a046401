"""One partition on every device (contract 2): labels on real images, batch by batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import torch

from spit import kernels
from spit.data.images import load_image
from spit.parts import TOKENIZERS
from spit.tokenizers import SuperpixelTokenizer, Tokenizer, VoronoiTokenizer

BATCHES = (1, 7, 64)
CHECKED: tuple[Tokenizer, ...] = (
    SuperpixelTokenizer(),
    SuperpixelTokenizer(compactness=0.1, max_tokens=196),
    SuperpixelTokenizer(levels=3, features="saturated", similarity="variance", self_loop="none", max_tokens=600,
                        refine=3),
    VoronoiTokenizer(),
)


@dataclass(frozen=True)
class Check:
    """How many images have the same labels on both sides."""

    tokenizer: str
    batch: int
    same: int
    images: int


def check_labels(paths: Sequence[Path], device: torch.device) -> Iterator[Check]:
    """Labels on the device against numba's; on the CPU, numba's against the reference's.

    Images of one size are put into batches of 1, 7 and 64.
    """
    images = sorted(map(load_image, paths), key=lambda image: image.shape)
    sizes = [torch.stack(list(run)) for _, run in groupby(images, key=lambda image: image.shape)]
    for tokenizer in CHECKED:
        options = {key: value for key, value in tokenizer.config().items() if value != type(tokenizer)().config()[key]}
        name = ", ".join([str(TOKENIZERS.name_of(tokenizer)), *(f"{key}={value}" for key, value in options.items())])
        expected = [tokenizer(image).blocks[0] for image in images]
        for batch in BATCHES:
            with kernels.backend("reference" if device.type == "cpu" else "gpu"):
                found = [labels for block in sizes for part in block.split(batch)
                         for labels in tokenizer(part.to(device)).blocks[0].cpu()]
            same = sum(torch.equal(labels, own[0]) for labels, own in zip(found, expected, strict=True))
            yield Check(name, batch, same, len(images))
