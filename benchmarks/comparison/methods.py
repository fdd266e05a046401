"""Every superpixel method behind one interface: an image and one parameter in, labels out.

The parameter is the number of regions, the spacing of seeds in pixels, or a scale. All other settings are the packages'
defaults, or those of their own superpixel examples; each function says which.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil, exp, floor, log, sqrt
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spit.arrays import cut, superpixels
from spit.errors import MissingExtra
from spit.kernels.options import SuperpixelOptions
from spit.options import check_choice
from spit.tokenizers import SuperpixelTokenizer

COMPACT = 4.3  # the compactness of spit-compact
Photo = NDArray[np.uint8]
Regions = NDArray[Any]
Segment = Callable[[Photo, float], Regions]


@dataclass(frozen=True)
class Method:
    """A superpixel method.

    Attributes:
        name: on the command line.
        title: in tables.
        parameter: name of its one parameter.
        slope: about d log(regions) / d log(parameter).
        guess: parameter for a number of regions and of pixels, about.
        segment: image ``(H, W, 3)`` uint8 and parameter → labels ``(H, W)``.
        whole: whether the parameter is a whole number.
        package: what must be installed; None for spit itself.
        jumps: whether it has only a few possible counts, far apart.
    """

    name: str
    title: str
    parameter: str
    slope: float
    guess: Callable[[int, int], float]
    segment: Segment
    whole: bool = False
    package: str | None = None
    jumps: bool = False

    @property
    def ours(self) -> bool:
        return self.package is None

    def near(self, parameter: float) -> float:
        """The closest possible parameter."""
        return max(round(parameter), 1) if self.whole else float(f"{parameter:.4g}")

    def moved(self, parameter: float, change: float) -> float:
        """Another parameter, for about e^change times as many regions."""
        target = parameter * exp(change / self.slope)
        if not self.whole:
            return self.near(target)
        return max(floor(target), 1) if target < parameter else ceil(target)


def choose_methods(names: Sequence[str]) -> list[Method]:
    """The methods of these names, in order (default: all).

    Raises:
        ValueError: an unknown name; the message has the nearest known one.
        MissingExtra: a package of one of them is not installed.
    """
    for name in names:
        check_choice("algorithm", name, METHODS)
    methods = [METHODS[name] for name in dict.fromkeys(names or METHODS)]
    for method in methods:
        if method.package is not None and find_spec(method.package) is None:
            package = {"cv2": "opencv-contrib-python-headless", "skimage": "scikit-image"}[method.package]
            raise MissingExtra(package, "bench", f"comparing with {method.title}")
    return methods


def _spit(image: Photo, n: float) -> Regions:
    """:func:`spit.superpixels` at its defaults: the tree, five sweeps of boundary moves, and a second tree."""
    return superpixels(image, n=round(n))


def _spit_fast(image: Photo, n: float) -> Regions:
    """:func:`spit.superpixels` with one sweep of boundary moves."""
    return superpixels(image, n=round(n), refine=1)


def _spit_compact(image: Photo, n: float) -> Regions:
    """:func:`spit.superpixels` with regions as compact as SLIC's."""
    return superpixels(image, n=round(n), compactness=COMPACT)


def _spit_unrefined(image: Photo, n: float) -> Regions:
    """:func:`spit.superpixels` without the boundary moves."""
    return superpixels(image, n=round(n), refine=0)


def _spit_rounds(image: Photo, n: float) -> Regions:
    """:func:`spit.superpixels` before it had a tree: levels and rounds by variance, then three sweeps."""
    planes = np.ascontiguousarray(np.moveaxis(image, -1, 0))
    levels = max(floor(log(planes[0].size / (3 * n), 3.6)), 1)  # to about 3 n regions or more
    return cut(planes, SuperpixelOptions(levels=levels, features="saturated", similarity="variance", self_loop="none",
                                         max_tokens=round(n), refine=3))[0]


def _spit_paper(image: Photo, levels: float) -> Regions:
    """The paper's algorithm: the tokenizer's defaults, the last of so many levels."""
    return SuperpixelTokenizer(levels=round(levels))(torch.from_numpy(image).movedim(-1, 0)).blocks[0][0].numpy()


def _slic(image: Photo, spacing: float) -> Regions:
    """scikit-image's SLIC at its defaults: compactness 10, 10 iterations, connectivity enforced.

    Its seeds lie on a grid of whole pixels, so only some values of ``n_segments`` differ.
    """
    from skimage.segmentation import slic

    return np.asarray(slic(image, n_segments=_seed_count(image, spacing), start_label=0))


def _watershed(image: Photo, spacing: float) -> Regions:
    """scikit-image's compact watershed as its gallery runs it: Sobel of the grey image, compactness 0.001."""
    from skimage.color import rgb2gray
    from skimage.filters import sobel
    from skimage.segmentation import watershed

    return np.asarray(watershed(sobel(rgb2gray(image)), markers=_seed_count(image, spacing), compactness=0.001))


def _felzenszwalb(image: Photo, scale: float) -> Regions:
    """scikit-image's Felzenszwalb at its defaults: sigma 0.8, min_size 20.

    Its graph has 8 neighbours, so its labels are 8-connected: there are about twice as many 4-connected regions.
    """
    from skimage.segmentation import felzenszwalb

    return np.asarray(felzenszwalb(image, scale=scale))


def _quickshift(image: Photo, ratio: float) -> Regions:
    """scikit-image's quickshift with the kernel_size 3 and max_dist 6 of its gallery; more ratio, more colour.

    ``max_dist`` cannot be the parameter: labels fall into pieces, and some 800 remain on a BSDS image however large it
    is. Nor can ``kernel_size``, since the time grows with its square. By ratio the count comes down to about 430.
    """
    from skimage.segmentation import quickshift

    return np.asarray(quickshift(image, ratio=ratio, kernel_size=3, max_dist=6))


def _seeds(image: Photo, regions: float) -> Regions:
    """OpenCV's SEEDS as its sample runs it: HSV, 4 levels, prior 2, 5 histogram bins, 4 iterations.

    Its grid doubles from level to level: a BSDS image has 60, 260, 600 or 2400 regions, and little between.
    """
    import cv2

    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
    height, width, channels = hsv.shape
    seeds = cv2.ximgproc.createSuperpixelSEEDS(width, height, channels, round(regions), 4, 2, 5)
    seeds.iterate(hsv, 4)
    return np.asarray(seeds.getLabels())


def _opencv(algorithm: str, iterations: int = 10) -> Segment:
    """OpenCV's SLIC, SLICO, MSLIC (ruler 10) and LSC (ratio 0.075) at the defaults, pieces below 25 % absorbed.

    They get a Gaussian of 3×3, then CIELAB, which OpenCV's documentation recommends. MSLIC takes the 3 iterations of
    OpenCV's sample. It splits regions as it iterates: 10 iterations take thirty times as long and explain less (R² .76
    with 1,000 regions against .87 with 580).
    """
    def segment(image: Photo, spacing: float) -> Regions:
        import cv2

        lab = cv2.cvtColor(cv2.GaussianBlur(image, (3, 3), 0), cv2.COLOR_RGB2LAB)
        if algorithm == "LSC":
            method: Any = cv2.ximgproc.createSuperpixelLSC(lab, round(spacing), 0.075)
        else:
            method = cv2.ximgproc.createSuperpixelSLIC(lab, getattr(cv2.ximgproc, algorithm), round(spacing), 10.0)
        method.iterate(iterations)
        method.enforceLabelConnectivity(25)
        return np.asarray(method.getLabels())

    return segment


def _seed_count(image: Photo, spacing: float) -> int:
    """The number of seeds for which scikit-image has this spacing."""
    return max(round(float(image.shape[0] * image.shape[1]) / spacing**2), 1)


def _asked(wanted: int, pixels: int) -> float:
    return wanted


def _levels(wanted: int, pixels: int) -> float:
    """The count law: 4^levels pixels to a region."""
    return log(pixels / wanted, 4)


def _spacing(wanted: int, pixels: int) -> float:
    return sqrt(pixels / wanted)


METHODS = {method.name: method for method in (
    Method("spit", "spit", "n", 1.0, _asked, _spit, whole=True),
    Method("spit-unrefined", "spit, unrefined", "n", 1.0, _asked, _spit_unrefined, whole=True),
    Method("spit-fast", "spit, one sweep", "n", 1.0, _asked, _spit_fast, whole=True),
    Method("spit-compact", "spit, compact", "n", 1.0, _asked, _spit_compact, whole=True),
    Method("spit-rounds", "spit, before the tree", "n", 1.0, _asked, _spit_rounds, whole=True),
    Method("spit-paper", "spit, as the paper", "levels", -6.0, _levels, _spit_paper, whole=True, jumps=True),
    Method("seeds", "SEEDS (OpenCV)", "num_superpixels", 1.0, lambda wanted, _: 1.17 * wanted, _seeds, whole=True,
           package="cv2", jumps=True),
    Method("slic", "SLIC (scikit-image)", "spacing", -2.0, lambda *size: 0.89 * _spacing(*size), _slic, whole=True,
           package="skimage"),
    Method("opencv-slic", "SLIC (OpenCV)", "region_size", -2.0, _spacing, _opencv("SLIC"), whole=True, package="cv2"),
    Method("slico", "SLICO (OpenCV)", "region_size", -2.0, _spacing, _opencv("SLICO"), whole=True, package="cv2"),
    Method("mslic", "MSLIC (OpenCV)", "region_size", -1.2, lambda *size: 1.8 * _spacing(*size),
           _opencv("MSLIC", iterations=3), whole=True, package="cv2"),
    Method("lsc", "LSC (OpenCV)", "region_size", -1.7, lambda *size: 1.1 * _spacing(*size), _opencv("LSC"), whole=True,
           package="cv2"),
    Method("watershed", "compact watershed", "spacing", -2.0, _spacing, _watershed, whole=True, package="skimage"),
    Method("felzenszwalb", "Felzenszwalb", "scale", -0.85, lambda *size: 0.85 * _spacing(*size) ** 2, _felzenszwalb,
           package="skimage"),
    Method("quickshift", "quickshift", "ratio", 0.7, lambda *size: 3.0 / _spacing(*size), _quickshift,
           package="skimage"),
)}
