"""Logits of an exported graph against those of the model, at ten token counts."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from spit.model import SpitModel
from spit.tokenizers import VoronoiTokenizer

COUNTS = (1, 2, 3, 10, 49, 196, 324, 576, 1024, 4096)
SIDE = 64  # of the image whose tokens are counted: 4,096 pixels


def differences(model: SpitModel, run: Callable[[Tensor], Tensor]) -> tuple[dict[int, float], float]:
    """The largest absolute difference of logits at each count, and the largest logit.

    Args:
        run: the exported graph, from features to logits.
    """
    found, largest = {}, 0.0
    with torch.no_grad():
        for count, given, expected in _cases(model):
            found[count] = float((run(given) - expected).abs().max())
            largest = max(largest, float(expected.abs().max()))
    return found, largest


def _cases(model: SpitModel) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Token counts, their features, and the model's own logits, on an image of noise over a slope."""
    random = torch.Generator().manual_seed(0)
    slope = torch.linspace(0, 0.5, SIDE)[:, None].expand(SIDE, SIDE)
    image = slope + torch.rand(1, model.config.channels, SIDE, SIDE, generator=random) / 2
    for count in COUNTS:
        tokens = model.extractor(image, VoronoiTokenizer(count)(image))
        yield count, tokens.values.contiguous(), model.run(tokens)[0]
