"""Images with human segmentations: BSDS500 or SBD as they are, or any folder of images and label maps.

::

    images/…/cat.jpg            any format that spit.load_image reads, at any depth
    groundTruth/…/cat.mat       BSDS500: a cell array ``groundTruth`` of structs with ``Segmentation``
    labels/…/cat.regions.txt    SBD, the Stanford Background Dataset (iccv09Data): a row of integers for each row of
                                pixels, -1 for unknown
    labels/…/cat.png            or label maps, .png, .npy or .npz (``labels``): one, or several as
    labels/…/cat_1.png …        cat_1, cat_2, …

A PNG's labels are its grey values or palette indices; in a colour PNG each colour is a label. SBD's labels are semantic
classes: each 4-connected piece of a class is a segment of its own, as Stutz et al. (2018) evaluate them.
"""

import re
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from spit.data.folders import image_paths
from spit.data.images import load_image, no_such_path
from spit.errors import ImageError, MissingExtra
from spit.evaluation.libraries import library
from spit.evaluation.samples import Sample
from spit.evaluation.superpixels import Labels, as_labels, connected_regions

TRUTHS = ("groundTruth", "labels")


def find_samples(folder: Path) -> list[Sample]:
    """The images below ``images/`` of a folder, in order, each with its segmentations."""
    wanted = " or ".join(f"{name}/" for name in TRUTHS)
    if not folder.is_dir():
        got = "got a file" if folder.is_file() else no_such_path(str(folder))
        raise ImageError(f"{folder}: expected a folder with images/ and {wanted}, {got}")
    roots = [folder / name for name in TRUTHS if (folder / name).is_dir()]
    if not (folder / "images").is_dir() or not roots:
        raise ImageError(f"{folder}: expected images/ and {wanted} in it, found no {'images/' if roots else wanted}; "
                         "BSDS500 has them in BSR/BSDS500/data")
    samples = []
    for path in image_paths(folder / "images"):
        name = path.relative_to(folder / "images").with_suffix("")
        truths = tuple(file for root in roots for file in _truth_files(root / name))
        if not truths:
            raise ImageError(f"{path}: expected its label map at {roots[0] / name} with {', '.join(READERS)} "
                             "(or _1, _2, … before it), found none")
        samples.append(Sample(name.as_posix(), path, truths))
    return samples


def read_sample(sample: Sample) -> tuple[NDArray[np.uint8], list[Labels]]:
    """The image, ``(H, W, 3)`` uint8, and every segmentation of it, ``(H, W)`` with labels from 0."""
    image = np.ascontiguousarray(load_image(sample.image).movedim(0, -1).numpy())
    truths = [truth for path in sample.truths for truth in read_truths(path)]
    for truth in truths:
        if truth.shape != image.shape[:2]:
            raise ImageError(f"{sample.truths[0]}: expected label maps as high and wide as their upright image, "
                             f"{image.shape[:2]}, got {truth.shape}")
    return image, truths


def read_truths(path: Path) -> list[Labels]:
    """Every segmentation in one file, ``(H, W)`` with labels from 0.

    Raises:
        ImageError: a damaged file, or one of another kind.
    """
    try:
        return [as_labels(truth) for truth in READERS[path.suffix.lower()](path)]
    except MissingExtra:
        raise
    except (OSError, ValueError, KeyError, IndexError, TypeError, SyntaxError, NotImplementedError,
            zipfile.BadZipFile, Image.DecompressionBombError) as error:
        raise ImageError(f"{path}: expected a label map of integers, (H, W), as comparison.data "
                         f"describes them, got something else or a damaged file ({' '.join(str(error).split())})"
                         ) from error


def _truth_files(place: Path) -> list[Path]:
    """``cat.png``, ``cat.regions.txt``, or ``cat_1.png`` and so on by their numbers."""
    numbered = re.compile(re.escape(place.name) + r"(?:_(\d+)|\.regions)?")
    found = [(int(match[1] or 0), path) for path in (place.parent.iterdir() if place.parent.is_dir() else ())
             if path.suffix.lower() in READERS and (match := numbered.fullmatch(path.stem))]
    return [path for _, path in sorted(found)]


def _read_mat(path: Path) -> list[NDArray[np.integer]]:
    reader = library("scipy.io", "reading .mat files")
    try:
        cells = reader.loadmat(path)["groundTruth"]
    except reader.matlab.MatReadError as error:
        raise ValueError(str(error)) from error
    return [np.asarray(cell["Segmentation"][0, 0]) for cell in cells.ravel()]


def _read_png(path: Path) -> list[NDArray[np.integer]]:
    with Image.open(path, formats=("PNG",)) as image:
        pixels = np.array(image)
    if pixels.ndim == 3:  # a colour is one number
        pixels = pixels.astype(np.int64) @ (256 ** np.arange(pixels.shape[2], dtype=np.int64))
    return [pixels]


def _read_numpy(path: Path) -> list[NDArray[np.integer]]:
    loaded = np.load(path, allow_pickle=False)
    if path.suffix.lower() == ".npy":
        return [loaded]
    with loaded:
        return [loaded["labels"]]


def _read_text(path: Path) -> list[NDArray[np.integer]]:
    lines = [line for line in path.read_text(encoding="ascii").splitlines() if line.strip()]
    if not lines:
        raise ValueError("an empty file")
    return [connected_regions(np.loadtxt(lines, np.int64, comments=None, ndmin=2))]


READERS = {".mat": _read_mat, ".png": _read_png, ".npy": _read_numpy, ".npz": _read_numpy, ".txt": _read_text}
