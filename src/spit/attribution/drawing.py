"""Pictures of attribution maps, with Pillow and numpy alone."""

from collections.abc import Mapping

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from spit.attribution.occlusion import occlude, rank_pixels
from spit.drawing import Tile, draw_overlay
from spit.drawing.heat import heat_colors
from spit.drawing.pictures import as_picture
from spit.predictor import Prediction
from spit.wording import plural

CLIPPED = 0.05  # share of the pixels at either end, so that a few tokens do not hide all others
SHADE = 0.35  # weight of the grey image below the colours
SHARES = (0.05, 0.1, 0.2, 0.5)  # of the paper's occlusion figures
OF_CLASS = "of the class"
CAPTIONS = {"flow": ("Attention flow", "same for any class"), "rollout": ("Attention rollout", "same for any class"),
            "prototype": ("Prototypes", OF_CLASS), "lime": ("LIME (SLIC)", OF_CLASS),
            "relevance": ("Relevance", OF_CLASS), "random": ("Random", "a control"),
            "token_rise": ("Token RISE", OF_CLASS)}
PAPER_PROTOTYPE = ("Prototype PCA", "hardly depends on the class")  # PrototypeProjection(form="paper")


def draw_map(image: Tensor, values: Tensor) -> Image.Image:
    """A map in colours, from dark (low) to bright (high), over the image in grey.

    Shape:
        image ``(C, H, W)`` uint8 or floats in [0, 1], values ``(H, W)``; the picture is W × H.
    """
    if values.shape != image.shape[1:]:
        raise ValueError(f"expected a map of this image's {tuple(image.shape[1:])} pixels, got {tuple(values.shape)}; "
                         "a map of a reduced image has the original's pixels: give the original, spit.load_image(path)")
    numbers = values.detach().double().cpu().numpy()
    low, high = map_range(values)
    level = np.clip((numbers - low) / max(high - low, np.finfo(np.float64).tiny), 0, 1)
    grey = np.asarray(as_picture(image).convert("L"), np.float64)[:, :, None]
    return Image.fromarray(np.rint((1 - SHADE) * heat_colors(level) + SHADE * grey).astype(np.uint8))


def map_range(values: Tensor) -> tuple[float, float]:
    """The values of the darkest and of the brightest colour: all but 5 % of the pixels lie between, at either end."""
    low, high = np.quantile(values.detach().double().cpu().numpy(), (CLIPPED, 1 - CLIPPED))
    return float(low), float(high)


def captions_of(target: str) -> dict[str, tuple[str, str]]:
    """The captions of the methods, with the name of the class that they explain."""
    return {name: (words, target if detail == OF_CLASS else detail) for name, (words, detail) in CAPTIONS.items()}


def panel_row(prediction: Prediction, maps: Mapping[str, Tensor], caption: str, detail: str,
              captions: Mapping[str, tuple[str, str]] = CAPTIONS) -> list[Tile]:
    """A row of Fig. 1: the image, its tokens, and a map for each method.

    Args:
        caption, detail: of the image; ``captions``: of the maps, by the method's name.

    Shape:
        a prediction of one image; maps ``(H, W)`` by the method's name.
    """
    [image], partition = prediction.images, prediction.partition
    tokens = plural(int(partition.counts[0]), f"{prediction.predictor.model.config.tokenizer} token")
    row = [Tile(as_picture(image), caption, detail), Tile(draw_overlay(image, partition), "Tokens", tokens)]
    for name, values in maps.items():
        low, high = map_range(values)
        row.append(Tile(draw_map(image, values), *captions.get(name, (name, "")), (f"{low:.2g}", f"{high:.2g}")))
    return row


def occlusion_rows(prediction: Prediction, values: Tensor, label: int, before: str) -> list[list[Tile]]:
    """The paper's occlusion figures: a row without the most important pixels (Comp), and one with only those (Suff).

    Each caption has the probability of the class before and after.

    Shape:
        a prediction of one image; values ``(H, W)``.
    """
    [image], ranks = prediction.images, rank_pixels(values[None])
    rows = []
    for name, keep in (("Without the top {:.0%}", False), ("The top {:.0%} alone", True)):
        pictures = torch.cat([occlude(image[None], ranks, share, keep) for share in SHARES])
        chances = prediction.predictor(pictures, crop=False).probabilities[:, label].tolist()
        rows.append([Tile(as_picture(picture), name.format(share), f"{before}, now {chance:.1%}")
                     for picture, share, chance in zip(pictures, SHARES, chances, strict=True)])
    return rows
