"""A page of the best, the median and the worst masks, in the paper's three colours (Fig. "salient segmentation")."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from spit.drawing.panel import Tile, draw_panel
from spit.drawing.pictures import as_picture
from spit.evaluation.saliency_data import Truth, read_pair
from spit.evaluation.samples import Sample
from spit.segmentation import Segmentation
from spit.tokens import plural

TRUE_POSITIVE = (255, 255, 191)  # yellow
FALSE_POSITIVE = (252, 141, 89)  # orange
FALSE_NEGATIVE = (145, 191, 219)  # blue
STRENGTH = 0.7
ACROSS = 4


def draw_page(name: str, segment: Callable[[list[Tensor]], Segmentation], scores: Mapping[str, float],
              samples: Sequence[Sample], across: int = ACROSS) -> Image.Image:
    """The images of the highest, the median and the lowest IoU, a row each, with what was found in them.

    Args:
        name: of the model and its cut.
        segment: finds the masks.
        scores: IoU by the sample's name.
    """
    known = {sample.name: sample for sample in samples}
    rows = []
    for chosen in choose(scores, across):
        pairs = [read_pair(known[own]) for own, _ in chosen]
        masks = [segment([image]).mask[0].cpu().numpy() for image, _ in pairs]
        rows.append([Tile(draw_errors(image, mask, truth), own, f"IoU {iou:.3f}")
                     for (image, truth), mask, (own, iou) in zip(pairs, masks, chosen, strict=True)])
    return draw_panel(rows, f"{name}: best, median and worst of {plural(len(scores), 'image')} by IoU",
                      "yellow: found; orange: found, but not marked; blue: marked, but not found")


def choose(scores: Mapping[str, float], across: int = ACROSS) -> list[list[tuple[str, float]]]:
    """The best, the median and the worst names with their scores, the better first; one list for less than three."""
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) < 3:
        return [ranked]
    across = min(across, len(ranked) // 3)
    middle = (len(ranked) - across) // 2
    return [ranked[:across], ranked[middle : middle + across], ranked[-across:]]


def draw_errors(image: Tensor, mask: NDArray[np.bool_], truth: Truth) -> Image.Image:
    """The image in grey, with hits, false alarms and misses coloured; pixels that do not count stay grey.

    Shape:
        image ``(3, H, W)``, mask ``(H, W)``.
    """
    grey = np.asarray(as_picture(image).convert("L").convert("RGB")).astype(np.float64)
    layers = ((mask & truth.foreground, TRUE_POSITIVE), (mask & ~truth.foreground, FALSE_POSITIVE),
              (~mask & truth.foreground, FALSE_NEGATIVE))
    for pixels, color in layers:
        chosen = pixels & truth.counted
        grey[chosen] = (1 - STRENGTH) * grey[chosen] + STRENGTH * np.array(color)
    return Image.fromarray(np.rint(grey).astype(np.uint8))
