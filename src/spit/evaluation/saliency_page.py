"""A page of the best, the middle and the worst masks, in the paper's three colours (Fig. "salient segmentation")."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from spit.drawing.panel import Tile, draw_panel
from spit.drawing.pictures import as_picture
from spit.evaluation.saliency import Contender, Row
from spit.evaluation.saliency_data import Sample, Truth
from spit.segmentation.saliency import segment_with
from spit.tokens import plural

TRUE_POSITIVE = (255, 255, 191)  # yellow
FALSE_POSITIVE = (252, 141, 89)  # orange
FALSE_NEGATIVE = (145, 191, 219)  # blue
STRENGTH = 0.7
ACROSS = 4


def draw_page(contender: Contender, row: Row, samples: Sequence[Sample], across: int = ACROSS) -> Image.Image:
    """The images of the highest, the middle and the lowest IoU, a row each, with what was found in them."""
    known = {sample.name: sample for sample in samples}
    rows = [[_tile(contender, known[name], iou) for name, iou in chosen]
            for chosen in choose(row.scores, across).values()]
    title = f"{contender}: best, median and worst of {plural(row.images, 'image')} by IoU"
    return draw_panel(rows, title, "yellow: found; orange: found, but not marked; blue: marked, but not found")


def choose(scores: Mapping[str, float], across: int = ACROSS) -> dict[str, list[tuple[str, float]]]:
    """The best, the middle and the worst names with their scores, the better first; a small set gives fewer."""
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) < 3:
        return {"best": ranked}
    across = min(across, len(ranked) // 3)
    middle = (len(ranked) - across) // 2
    return {"best": ranked[:across], "median": ranked[middle : middle + across], "worst": ranked[-across:]}


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


def _tile(contender: Contender, sample: Sample, iou: float) -> Tile:
    image, truth = sample.read()
    model = contender.subject.model
    found = segment_with(model, image.to(model.embedder.class_token.device), contender.cut)
    return Tile(draw_errors(image, found.mask[0].cpu().numpy(), truth), sample.name, f"IoU {iou:.3f}")
