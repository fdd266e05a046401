"""One partition on every device (contract 2): labels on real images, batch by batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

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
    images = [load_image(path) for path in paths]
    for tokenizer in CHECKED:
        options = {key: value for key, value in tokenizer.config().items() if value != type(tokenizer)().config()[key]}
        name = ", ".join([str(TOKENIZERS.name_of(tokenizer)), *(f"{key}={value}" for key, value in options.items())])
        expected = [tokenizer(image).blocks[0][0] for image in images]
        for batch in BATCHES:
            same = sum(_same(tokenizer, images, expected, group, device) for group in _groups(images, batch))
            yield Check(name, batch, same, len(images))


def _groups(images: Sequence[Tensor], batch: int) -> Iterator[list[int]]:
    """Places of images of one size, ``batch`` at a time."""
    sizes: dict[torch.Size, list[int]] = {}
    for place, image in enumerate(images):
        sizes.setdefault(image.shape, []).append(place)
    for places in sizes.values():
        for start in range(0, len(places), batch):
            yield places[start : start + batch]


def _same(tokenizer: Tokenizer, images: Sequence[Tensor], expected: Sequence[Tensor], group: Sequence[int],
          device: torch.device) -> int:
    block = torch.stack([images[place] for place in group]).to(device)
    with kernels.backend("reference" if device.type == "cpu" else "gpu"):
        labels = tokenizer(block).blocks[0].cpu()
    return sum(torch.equal(labels[index], expected[place]) for index, place in enumerate(group))
