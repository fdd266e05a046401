"""Logits of an exported graph against those of the model, at ten token counts."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from spit.export.graphs import PixelGraph, TokenGraph
from spit.model import SpitModel
from spit.tokenizers import VoronoiTokenizer

COUNTS = (1, 2, 3, 10, 49, 196, 324, 576, 1024, 4096)
GRIDS = ((2, 2), (2, 3), (3, 5), (4, 4), (7, 7), (8, 12), (14, 14), (18, 18), (20, 15), (24, 24))
SIDE = 64  # of the image whose tokens are counted: 4,096 pixels


def differences(model: SpitModel, graph: TokenGraph, run: Callable[[Tensor], Tensor]) -> tuple[dict[int, float], float]:
    """The largest absolute difference of logits at each count, and the largest logit.

    Args:
        run: the exported graph, from its input to logits.
    """
    found, largest = {}, 0.0
    with torch.no_grad():
        for count, given, expected in _cases(model, graph):
            found[count] = float((run(given) - expected).abs().max())
            largest = max(largest, float(expected.abs().max()))
    return found, largest


def _cases(model: SpitModel, graph: TokenGraph) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Token counts, what the graph takes, and the model's own logits, on images of noise over a slope."""
    random = torch.Generator().manual_seed(0)
    channels = model.config.channels
    if isinstance(graph, PixelGraph):
        for rows, columns in GRIDS:
            images = _images(2, channels, rows * graph.side, columns * graph.side, random)
            yield rows * columns, images, model(images)
        return
    image = _images(1, channels, SIDE, SIDE, random)
    for count in COUNTS:
        tokens = model.extractor(image, VoronoiTokenizer(count)(image))
        yield count, tokens.values.contiguous(), model.run(tokens)[0]


def _images(batch: int, channels: int, height: int, width: int, random: torch.Generator) -> Tensor:
    slope = torch.linspace(0, 0.5, height)[:, None].expand(height, width)
    return slope + torch.rand(batch, channels, height, width, generator=random) / 2
