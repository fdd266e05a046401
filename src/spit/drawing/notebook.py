"""What a notebook shows of partitions, predictions and segmentations: one PNG each."""

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from spit.drawing.heat import heat_colors
from spit.drawing.masks import draw_mask
from spit.drawing.panel import Tile, draw_panel
from spit.drawing.pictures import draw_labels, draw_overlay, encode_png
from spit.partition import Partition
from spit.wording import plural

SHOWN = 4  # images of a batch


def partition_png(partition: Partition) -> bytes:
    """The regions of the first images, each in a colour of its own."""
    tiles = []
    for index in range(min(SHOWN, len(partition))):
        one = partition[index]
        height, width = one.blocks[0].shape[1:]
        tiles.append(Tile(draw_labels(one), plural(int(one.counts[0]), "region"), f"{width} × {height}"))
    return encode_png(draw_panel([tiles], note=_more(len(partition))))


def prediction_png(images: Sequence[Tensor], partition: Partition, captions: Sequence[str]) -> bytes:
    """The first images with the outlines of their tokens, and a caption for each; regions alone if not in colour."""
    tiles = []
    for index, (image, caption) in enumerate(zip(images[:SHOWN], captions, strict=False)):
        one = partition[index].to("cpu")
        drawn = draw_overlay(image.cpu(), one) if image.shape[0] in (1, 3) else draw_labels(one)
        tiles.append(Tile(drawn, caption, plural(int(one.counts[0]), "token")))
    return encode_png(draw_panel([tiles], note=_more(len(images))))


def segmentation_png(saliency: Sequence[Tensor], masks: Sequence[Tensor]) -> bytes:
    """The soft maps of the first images, with the masks outlined."""
    tiles = []
    for soft, mask in zip(saliency[:SHOWN], masks[:SHOWN], strict=True):
        colors = np.rint(heat_colors(soft.double().cpu().numpy())).astype(np.uint8)
        drawn: Image.Image = draw_mask(torch.from_numpy(colors).movedim(-1, 0), mask.cpu().numpy())
        tiles.append(Tile(drawn, f"{float(mask.float().mean()):.1%} foreground", f"{mask.shape[1]} × {mask.shape[0]}"))
    return encode_png(draw_panel([tiles], note=_more(len(masks))))


def _more(count: int) -> str:
    return f"{SHOWN} of {plural(count, 'image')}" if count > SHOWN else ""
