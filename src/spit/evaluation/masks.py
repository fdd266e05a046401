"""Human masks of salient objects: their files, how well a map finds one (§3.2), and a page of found ones.

ECSSD, DUTS, DUT-OMRON, Oxford Pets, or any two folders::

    images/…/cat.jpg                 any format that spit.load_image reads, at any depth
    ground_truth_mask/…/cat.png      a mask of the same name; LAYOUTS has the known folders

A mask is read by its grey values; of a colour the brightest channel counts:

- only 0 and 1: 1 is the foreground;
- only 1, 2 and 3, with a 2: a trimap, 1 the foreground, 2 the background, 3 not counted (Oxford Pets);
- values beyond 127: above 127 is the foreground (JPEG masks, and soft edges);
- anything else is refused, since the meaning of 0, 1 and 2 is not known.

A mask of another size is resized by the nearest pixel if its aspect agrees to 2 %, and refused otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from spit.data.folders import image_paths
from spit.data.images import load_image, no_such_path, printable
from spit.drawing.panel import Tile, draw_panel
from spit.drawing.pictures import as_picture
from spit.errors import ImageError
from spit.evaluation.libraries import library
from spit.evaluation.options import MaskFolders
from spit.evaluation.samples import Sample
from spit.predictor import at_size
from spit.segmentation.saliency import Segmentation
from spit.wording import plural

LAYOUTS = (  # images, masks
    ("images", "ground_truth_mask"),  # ECSSD
    ("images", "masks"),
    ("images", "annotations/trimaps"),  # Oxford Pets
    ("DUTS-TE-Image", "DUTS-TE-Mask"),
    ("DUTS-TR-Image", "DUTS-TR-Mask"),
    ("DUT-OMRON-image", "pixelwiseGT-new-PNG"),
    ("imgs", "gt"),
)
HALF = 127
ASPECT = 0.02
THRESHOLDS = 255
BETA2 = 0.3  # TokenCut's and the field's
PAPER_BETA2 = 1 / 9  # β = 1/3, as the paper writes it
OWN_BETA2 = BETA2**2  # in the code of SelfMask and FOUND, which squares 0.3 again
TRUE_POSITIVE = (255, 255, 191)  # yellow; the colours of the paper's figure of salient segmentation
FALSE_POSITIVE = (252, 141, 89)  # orange
FALSE_NEGATIVE = (145, 191, 219)  # blue
STRENGTH = 0.7
ACROSS = 4

Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Truth:
    """What people marked; only counted pixels are in figures. Both are ``(H, W)``."""

    foreground: Mask
    counted: Mask


def find_samples(data: Path, options: MaskFolders = MaskFolders()) -> list[Sample]:  # noqa: B008
    """The images of a folder in order, each with its mask; the name is the path below the images, without a suffix.

    Raises:
        ImageError: no such folders, no images, or an image without a mask.
        ValueError: one of the two folders without the other.
    """
    images, masks = options.image_folder, options.mask_folder
    if (images is None) != (masks is None):
        raise ValueError("--image-folder and --mask-folder go together: give both, or neither")
    if images is None or masks is None:
        images, masks = _layout(data)
    found = {path.relative_to(data / masks).with_suffix("").as_posix(): path for path in image_paths(data / masks)}
    samples = []
    for path in image_paths(data / images)[: options.first]:
        name = path.relative_to(data / images).with_suffix("").as_posix()
        if name not in found:
            raise ImageError(f"{path}: expected its mask below {data / masks}, of the same name, found none")
        samples.append(Sample(name, path, (found[name],)))
    return samples


def _layout(data: Path) -> tuple[str, str]:
    if not data.is_dir():
        name = printable(data)
        got = "got a file" if data.is_file() else no_such_path(name)
        raise ImageError(f"{name}: expected a folder of images and masks, {got}")
    for images, masks in LAYOUTS:
        if (data / images).is_dir() and (data / masks).is_dir():
            return images, masks
    pairs = "; ".join(f"{images}/ and {masks}/" for images, masks in LAYOUTS)
    raise ImageError(f"{data}: expected one of these pairs of folders in it: {pairs}; name others with "
                     "--image-folder and --mask-folder")


def read_pair(sample: Sample) -> tuple[Tensor, Truth]:
    """The image, ``(3, H, W)`` uint8, and its truth at the same size."""
    image = load_image(sample.image)
    return image, read_mask(sample.truths[0], (image.shape[1], image.shape[2]))


def read_mask(path: Path, size: tuple[int, int]) -> Truth:
    """A mask file at the size ``(H, W)`` of its image.

    Raises:
        ImageError: damaged, of another aspect, or with values that this module does not describe.
    """
    mask = load_image(path).numpy().max(0)  # by numpy: torch would start threads in each that reads
    height, width = mask.shape
    if abs(height * size[1] / (width * size[0]) - 1) > ASPECT:
        raise ImageError(f"{path}: expected a mask of its image's {size[1]} × {size[0]} pixels or of that aspect, "
                         f"got {width} × {height}")
    grey = at_size(torch.from_numpy(mask), size).numpy()
    values = np.unique(grey)
    everywhere = np.ones(size, dtype=bool)
    if values[-1] <= 1:
        return Truth(grey == 1, everywhere)
    if values[-1] > HALF:
        return Truth(grey > HALF, everywhere)
    if values[0] >= 1 and values[-1] <= 3 and 2 in values:
        return Truth(grey == 1, grey != 3)
    raise ImageError(f"{path}: expected a mask of 0 and 1, of 0 to 255, or a trimap of 1, 2 and 3, got values "
                     f"{', '.join(map(str, values[:8].tolist()))}{', …' if len(values) > 8 else ''}")


@dataclass(frozen=True)
class Scores:
    """One image's figures.

    Attributes:
        iou: of the mask, ``|M ∩ G| / |M ∪ G|``.
        accuracy: the share of pixels where mask and truth agree.
        positives, hits: pixels at or above each threshold, and those of them in the foreground, ``(255,)``.
        foreground: pixels of the truth's foreground.
    """

    iou: float
    accuracy: float
    positives: Counts
    hits: Counts
    foreground: int


def score(saliency: NDArray[np.float32], mask: Mask, truth: Truth) -> Scores:
    """Compare a soft map in [0, 1] and a mask with the truth, on the pixels that count.

    Threshold k is ``k / 254``, and what lies at or above it is positive: all pixels at the first.
    """
    soft, chosen, wanted = saliency[truth.counted], mask[truth.counted], truth.foreground[truth.counted]
    either = int((chosen | wanted).sum())
    place = _places(soft)
    positives, hits = (np.bincount(places, minlength=THRESHOLDS)[::-1].cumsum()[::-1]
                       for places in (place, place[wanted]))
    return Scores(iou=int((chosen & wanted).sum()) / either if either else 1.0,
                  accuracy=float((chosen == wanted).mean()) if len(chosen) else 1.0,
                  positives=positives, hits=hits, foreground=int(wanted.sum()))


def _places(soft: NDArray[np.float32]) -> NDArray[np.int64]:
    """The last threshold that each value reaches: ``searchsorted(thresholds, soft, side="right") - 1``, but faster."""
    thresholds = np.linspace(0, 1, THRESHOLDS)
    place = np.clip((soft * np.float64(THRESHOLDS - 1)).astype(np.int64), 0, THRESHOLDS - 1)
    place -= thresholds[place] > soft
    place += np.append(thresholds, np.inf)[place + 1] <= soft
    return place


def count_parts(mask: Mask) -> tuple[int, int]:
    """The 4-connected pieces of a mask, and its holes: pieces of the background that do not touch the border."""
    label = library("scipy.ndimage", "counting the pieces of a mask").label
    framed = np.pad(~mask, 1, constant_values=True)  # the frame joins what touches the border
    return label(mask)[1], label(framed)[1] - 1


def f_measure(positives: Counts, hits: Counts, foreground: int, beta2: float = BETA2) -> NDArray[np.float64]:
    """``F = (1 + β²) P R / (β² P + R) = (1 + β²) TP / (TP + FP + β² (TP + FN))`` at each threshold; 0 without a hit."""
    f: NDArray[np.float64] = np.zeros(len(hits))
    np.divide((1 + beta2) * hits, positives + beta2 * foreground, out=f, where=hits > 0)
    return f


def best_threshold(curves: Sequence[NDArray[np.float64]]) -> int:
    """The index of the threshold at which the mean of F over images is largest; the first of equals."""
    return int(np.mean(curves, axis=0).argmax())


def draw_page(name: str, segment: Callable[[list[Tensor]], Segmentation], scores: Mapping[str, float],
              samples: Sequence[Sample]) -> Image.Image:
    """The images of the highest, the median and the lowest IoU, a row each, with what ``segment`` finds in them.

    Args:
        scores: IoU by the sample's name.
    """
    known = {sample.name: sample for sample in samples}
    rows = []
    for chosen in choose(scores):
        pairs = [read_pair(known[own]) for own, _ in chosen]
        masks = segment([image for image, _ in pairs]).mask
        row = [Tile(draw_errors(image, mask.cpu().numpy(), truth), own, f"IoU {iou:.3f}")
               for (image, truth), mask, (own, iou) in zip(pairs, masks, chosen, strict=True)]
        rows.append(row)
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


def draw_errors(image: Tensor, mask: Mask, truth: Truth) -> Image.Image:
    """The image in grey, with hits, false alarms and misses coloured; pixels that do not count stay grey."""
    grey = np.asarray(as_picture(image).convert("L").convert("RGB")).astype(np.float64)
    layers = ((mask & truth.foreground, TRUE_POSITIVE), (mask & ~truth.foreground, FALSE_POSITIVE),
              (~mask & truth.foreground, FALSE_NEGATIVE))
    for pixels, color in layers:
        chosen = pixels & truth.counted
        grey[chosen] = (1 - STRENGTH) * grey[chosen] + STRENGTH * np.array(color)
    return Image.fromarray(np.rint(grey).astype(np.uint8))
