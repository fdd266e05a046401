"""How the cost of tokens grows with the image and with the batch."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from spit.bench.photos import photo_batch
from spit.bench.timing import median_ms
from spit.features import FeatureExtractor
from spit.tokenizers import SuperpixelTokenizer

SIDES = (128, 256, 512, 1024, 2048, 4096)
BATCHES = (1, 4, 16, 64, 256)
SIDE = 256  # of the images whose batch grows


def measure_scaling(paths: Sequence[Path], device: torch.device, largest: int = 4096,
                    rounds: int = 10) -> Iterator[dict[str, Any]]:
    """Milliseconds per image of tokenizer and features: one image of growing size, then growing batches.

    Args:
        paths: photos to cut the images from.
        largest: maximal side; batches of 256² have at most as many pixels as such an image.
    """
    cases = [(side, 1) for side in SIDES if side <= largest]
    cases += [(SIDE, batch) for batch in BATCHES if batch > 1 and batch * SIDE**2 <= largest**2]
    tokenizer, extractor = SuperpixelTokenizer(), FeatureExtractor()
    for side, batch in cases:
        images = photo_batch(paths, batch, side, side).to(device)
        partition = tokenizer(images)
        tokenize = median_ms(lambda x=images: tokenizer(x), device, rounds)  # type: ignore[misc]
        extract = median_ms(lambda x=images, p=partition: extractor(x, p), device, rounds)  # type: ignore[misc]
        yield {"side": side, "batch": batch, "tokens": float(partition.counts.float().mean()),
               "tokenizer_ms": tokenize / batch, "features_ms": extract / batch}
