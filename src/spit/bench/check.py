"""One partition on every device (contract 2): labels on real images, batch by batch."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from pathlib import Path

import torch
from torch import Tensor

from spit import kernels
from spit.data.images import load_image
from spit.forward_pass import each_alone
from spit.parts import TOKENIZERS
from spit.tokenizers import SuperpixelTokenizer, Tokenizer, VoronoiTokenizer, create_tokenizer

Spread = Callable[[Callable[[Tensor], Tensor], Sequence[Tensor]], Iterable[Tensor]]

BATCHES = (1, 7, 64)
CHECKED: tuple[Tokenizer, ...] = (
    # Every two choices of two options occur together, a number's being its default and any other (a test counts them).
    SuperpixelTokenizer(),
    SuperpixelTokenizer(similarity="variance", self_loop="paper", compactness=0.1, max_tokens=196, refine=3),
    SuperpixelTokenizer(similarity="euclidean", self_loop="paper", compactness=0.4),
    SuperpixelTokenizer(levels=3, similarity="euclidean", self_loop="none", merge_threshold=0.1, refine=1),
    SuperpixelTokenizer(levels=3, similarity="euclidean", merge_threshold=0.05, max_tokens=600, refine=2),
    SuperpixelTokenizer(levels=5, self_loop="paper", max_tokens=100),
    SuperpixelTokenizer(similarity="variance", self_loop="paper", merge_threshold=0.1, refine=1),
    SuperpixelTokenizer(levels=2, self_loop="none", compactness=1.0, merge_threshold=0.2, max_tokens=1000),
    SuperpixelTokenizer(levels=5, features="saturated", similarity="variance", compactness=0.1, merge_threshold=0.1),
    SuperpixelTokenizer(levels=3, features="saturated", similarity="euclidean", self_loop="paper", compactness=1.0,
                        merge_threshold=0.3),
    SuperpixelTokenizer(levels=3, features="saturated", self_loop="none", max_tokens=600, refine=3),
    SuperpixelTokenizer(features="saturated", similarity="variance", self_loop="none", compactness=0.1, refine=3),
    SuperpixelTokenizer(method="tree"),  # which reads compactness, max_tokens and refine alone
    SuperpixelTokenizer(method="tree", max_tokens=600, refine=3, features="saturated", similarity="variance",
                        self_loop="none"),
    SuperpixelTokenizer(method="tree", levels=3, compactness=1.0, merge_threshold=0.1, similarity="euclidean",
                        self_loop="paper"),
    create_tokenizer("published"),
    create_tokenizer("published", levels=3, compactness=0.1, merge_threshold=0.1, refine=1),
    VoronoiTokenizer(),
    VoronoiTokenizer(100, seed=1),
    VoronoiTokenizer(seed=2),
    VoronoiTokenizer(50),
    create_tokenizer("published_voronoi"),
)


@dataclass(frozen=True)
class Check:
    """How many images have the same labels on both sides."""

    tokenizer: str
    batch: int
    same: int
    images: int


def check_labels(paths: Sequence[Path], device: torch.device) -> Iterator[Check]:
    """Labels on the device against numba's; on the CPU, numba's against the reference's; for every option.

    Images of one size are put into batches of 1, 7 and 64. On the CPU each thread has a batch of its own, and
    numba's labels are of each image alone.
    """
    images = sorted(map(load_image, paths), key=lambda image: image.shape)
    sizes = [torch.stack(list(run)) for _, run in groupby(images, key=lambda image: image.shape)]
    parts = {batch: [part for block in sizes for part in block.split(batch)] for batch in BATCHES}
    on_cpu = device.type == "cpu"
    spread: Spread = each_alone if on_cpu else map
    for tokenizer in CHECKED:
        options = {key: value for key, value in tokenizer.config().items() if value != type(tokenizer)().config()[key]}
        name = ", ".join([str(TOKENIZERS.name_of(tokenizer)), *(f"{key}={value}" for key, value in options.items())])
        expected = each_alone(partial(_labels, tokenizer, "numba", torch.device("cpu")), parts[1])
        for batch in BATCHES:
            found = spread(partial(_labels, tokenizer, "reference" if on_cpu else "triton", device), parts[batch])
            same = sum(map(torch.equal, chain(*found), chain(*expected)))
            yield Check(name, batch, same, len(images))


def _labels(tokenizer: Tokenizer, backend: str, device: torch.device, part: Tensor) -> Tensor:
    with kernels.backend(backend):  # here, since a thread begins with the default
        return tokenizer(part.to(device)).blocks[0].cpu()
