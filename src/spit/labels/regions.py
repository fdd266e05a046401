"""A table of the regions of a label map."""

import csv
import io
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from spit.errors import MissingExtra
from spit.kernels import Array
from spit.labels.loops import band_statistics, borders, measure
from spit.labels.numbering import bands, number


class Regions(dict[str, npt.NDArray[Any]]):
    """The answer of :func:`spit.regions`: arrays by name, with one entry for each label that occurs.

    Example:
        >>> import numpy as np, spit
        >>> table = spit.regions(np.array([[1, 1, 4], [1, 7, 4]]))
        >>> list(table)
        ['label', 'area', 'box', 'centroid', 'perimeter', 'compactness', 'neighbors']
        >>> print(table.to_csv().splitlines()[1])
        1,3,0,0,2,2,0.3333333333333333,0.3333333333333333,8,0.5890486225480862,2
    """

    def columns(self) -> dict[str, Array]:
        """Arrays of one dimension, named as by ``skimage.measure.regionprops_table``: box-0, box-1, …"""
        columns = {}
        for name, values in self.items():
            if values.ndim == 1:
                columns[name] = values
            else:
                columns.update({f"{name}-{place}": column for place, column in enumerate(values.T)})
        return columns

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` of the columns.

        Raises:
            MissingExtra: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise MissingExtra("pandas", "regions", "a data frame of regions") from error
        return DataFrame(self.columns())

    def to_csv(self) -> str:
        """The columns as comma-separated values, with a header."""
        text, columns = io.StringIO(), self.columns()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
        return text.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """Write :meth:`to_csv` to a .csv file."""
        if Path(path).suffix.lower() != ".csv":
            raise ValueError(f"{path}: expected a .csv file; to_pandas() gives a table that pandas saves otherwise")
        Path(path).write_text(self.to_csv())


def regions(labels: npt.ArrayLike, image: npt.ArrayLike | None = None, *, background: int | None = 0) -> Regions:
    """Measure the regions of a label map: a dict of arrays, one row per label that occurs, in ascending order.

    Args:
        labels: any integers; a region is all pixels of one label, connected or not. Not modified.
        image: of the same shape, with or without channels last; any real numbers and any number of bands.
        background: label of pixels that belong to no region; None if there is none.

    Shape:
        labels ``(H, W)`` or ``(D, H, W)``, image ``(H, W)``, ``(H, W, C)``, ``(D, H, W)`` or ``(D, H, W, C)``.

    Returns:
        ``label``; ``area`` in pixels; ``box`` as (y0, x0, y1, x1), ends excluded; ``centroid`` as mean (y, x), the
        first pixel at (0, 0); ``perimeter``, the sides of pixels towards other regions, the background or the outside
        of the map; ``compactness`` 4πA/P², at most π/4 for squares; ``neighbors``, how many other regions share a
        side of a pixel. With an image ``mean`` and ``std`` of each band, ``(N, C)``. In three dimensions boxes and
        centroids begin with z, ``perimeter`` counts faces of voxels, and ``compactness`` is 36πV²/A³.

    Raises:
        TypeError: labels are not integers, or the image has no real numbers.
        ValueError: labels have another number of dimensions, or the image another shape.

    Note:
        ``skimage.measure.regionprops_table`` has more properties and estimates perimeters of smooth outlines.

    Example:
        >>> import spit
        >>> from skimage.data import chelsea
        >>> table = spit.regions(spit.superpixels(chelsea(), n=200), chelsea())
        >>> int(table["area"].sum()) == 300 * 451, table["mean"].shape
        (True, (200, 3))
        >>> frame = table.to_pandas()  # columns label, area, box-0, …, mean-0, mean-1, mean-2, std-0, …
    """
    names, numbers = number(labels, background, (2, 3))
    solid, axes = numbers.ndim == 3, slice(3 - numbers.ndim, None)
    sizes, sums, boxes, faces = measure(numbers if solid else numbers[None], len(names), solid)
    area, perimeter = sizes[1:], faces[1:]
    table = Regions(
        label=names, area=area,
        box=np.concatenate([boxes[1:, :3][:, axes], boxes[1:, 3:][:, axes]], 1),
        centroid=sums[1:, axes] / area[:, None], perimeter=perimeter,
        compactness=36 * np.pi * area**2.0 / perimeter**3.0 if solid else 4 * np.pi * area / perimeter**2.0,
        neighbors=np.bincount(borders(numbers, len(names))[0].ravel(), minlength=len(names) + 1)[1:])
    if image is not None:
        table["mean"], table["std"] = statistics(numbers, image, sizes)
    return table


def statistics(numbers: Array, image: npt.ArrayLike, sizes: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each band in each region, ``(N, C)`` float64; ``sizes`` begin with background."""
    pixels = bands(image, numbers.shape)
    answers = [band_statistics(numbers.ravel(), pixels[..., band].astype(np.float64).ravel(), sizes)
               for band in range(pixels.shape[-1])]
    empty = np.empty((len(sizes), 0))
    means, spreads = (np.stack(part, 1) for part in zip(*answers, strict=True)) if answers else (empty, empty)
    return means[1:], spreads[1:]
