"""The picture of ``spit demo``."""

import numpy as np
from PIL import Image
from torch import Tensor

from spit.attribution.drawing import draw_map
from spit.drawing import Tile, draw_mean_colors, draw_overlay, draw_panel, encode_png
from spit.drawing.bars import draw_bars
from spit.drawing.panel import LARGEST, Theme, fit
from spit.drawing.pictures import as_picture
from spit.predictor import Prediction
from spit.segmentation.saliency import Segmentation

CLASSES = 5  # bars of the picture


def draw(pixels: Tensor, prediction: Prediction, heat: Tensor, found: Segmentation, theme: Theme) -> bytes:
    """Top: the photo and its tokens. Bottom: which classes, where, and why."""
    [seen], partition = prediction.images, prediction.partition
    photo = fit(as_picture(pixels))
    thickness = max(1, round(max(seen.shape[1:]) / LARGEST))  # about a pixel once the picture is shrunk
    guesses, name = prediction.top(CLASSES)[0], prediction.top(1)[0][0].name
    above = [Tile(photo, "Photo", f"{pixels[0].numel():,} pixels"),
             Tile(draw_overlay(seen, partition, thickness), "Tokens", f"{int(partition.counts[0]):,} superpixels"),
             Tile(draw_mean_colors(seen, partition), "Tokens in their mean colours", "they follow edges in the photo")]
    below = [Tile(draw_bars(guesses, *photo.size, theme), "What is it?", "the likeliest classes"),
             Tile(_cut_out(pixels, found, theme), "Where is it?", "the object, from a model trained without masks"),
             Tile(draw_map(pixels, heat), "Why?", f"evidence for “{name}”", ("low", "high"))]
    return encode_png(draw_panel([above, below], theme=theme))


def _cut_out(pixels: Tensor, found: Segmentation, theme: Theme) -> Image.Image:
    """The object alone, in front of what the panel is drawn on, a shade darker or brighter."""
    picture = as_picture(pixels)
    paper = Image.new("RGB", picture.size, theme.track)
    paper.paste(picture, mask=Image.fromarray(found.mask[0].cpu().numpy().astype(np.uint8) * 255))
    return paper
