"""The graph of the regions of a label map that touch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from spit.errors import MissingExtra
from spit.kernels import Array
from spit.labels.loops import borders
from spit.labels.numbering import number
from spit.labels.regions import statistics


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The answer of :func:`spit.adjacency`: which regions of a label map touch.

    Attributes:
        labels: the labels that occur, ascending, ``(N,)`` int64.
        areas: their pixels, ``(N,)`` int64.
        edges: pairs of labels that touch, the smaller first, in ascending order, ``(E, 2)`` int64.
        lengths: sides of pixels that they share, ``(E,)`` int64.
        means: mean of each band of the image, ``(N, C)`` float64.
        contrasts: distance of the two means, ``(E,)`` float64. Both are None without an image.

    Example:
        >>> import numpy as np, spit
        >>> graph = spit.adjacency(np.array([[1, 1, 4], [1, 7, 4]]))
        >>> graph.edges.tolist(), graph.lengths.tolist()
        ([[1, 4], [1, 7], [4, 7]], [1, 2, 1])
    """

    labels: Array
    areas: Array
    edges: Array
    lengths: Array
    means: Array | None = None
    contrasts: Array | None = None

    def to_networkx(self) -> Any:
        """A ``networkx.Graph`` of the labels.

        Nodes have ``labels`` and ``pixel count``, with an image also ``mean color`` and ``total color``, as
        scikit-image's graphs do; edges have ``length``, ``contrast`` and ``weight``, which is the contrast, or the
        length without an image.

        Raises:
            MissingExtra: networkx is not installed.
        """
        try:
            from networkx import Graph
        except ImportError as error:
            raise MissingExtra("networkx", "regions", "a graph of regions") from error
        return self._fill(Graph())

    def to_rag(self) -> Any:
        """The same as ``skimage.graph.RAG``, which ``skimage.graph.cut_threshold`` and its relatives take.

        Raises:
            MissingExtra: scikit-image is not installed.
        """
        try:
            from skimage.graph import RAG
        except ImportError as error:
            raise MissingExtra("scikit-image", "regions", "a graph of regions for scikit-image") from error
        return self._fill(RAG())

    def _fill(self, graph: Any) -> Any:
        for place, (label, area) in enumerate(zip(self.labels.tolist(), self.areas.tolist(), strict=True)):
            about = {"labels": [label], "pixel count": area}
            if self.means is not None:
                about |= {"mean color": self.means[place], "total color": self.means[place] * area}
            graph.add_node(label, **about)
        lengths = self.lengths.tolist()
        contrasts = [None] * len(lengths) if self.contrasts is None else self.contrasts.tolist()
        for (i, j), length, contrast in zip(self.edges.tolist(), lengths, contrasts, strict=True):
            about = {} if contrast is None else {"contrast": contrast}
            graph.add_edge(i, j, length=length, weight=length if contrast is None else contrast, **about)
        return graph


def adjacency(labels: npt.ArrayLike, image: npt.ArrayLike | None = None, *, background: int | None = 0) -> Adjacency:
    """Find the regions of a label map that touch, how long their border is, and how much they differ.

    Regions touch where two of their pixels share a side. :meth:`spit.Partition.adjacency` is the same for tensors.

    Args:
        labels: any integers; a region is all pixels of one label, connected or not. Not modified.
        image: of the same shape, with or without channels last; any real numbers and any number of bands.
        background: label of pixels that belong to no region; None if there is none.

    Shape:
        labels ``(H, W)`` or ``(D, H, W)``, image ``(H, W)``, ``(H, W, C)``, ``(D, H, W)`` or ``(D, H, W, C)``.

    Raises:
        TypeError: labels are not integers, or the image has no real numbers.
        ValueError: labels have another number of dimensions, or the image another shape.

    Example:
        >>> import spit
        >>> from skimage import data, graph
        >>> image = data.coffee()
        >>> labels = spit.superpixels(image, n=400)
        >>> touching = spit.adjacency(labels, image)
        >>> touching.edges.shape[1], touching.contrasts.shape == touching.lengths.shape
        (2, True)
        >>> merged = graph.cut_threshold(labels, touching.to_rag(), thresh=20)
        >>> len(touching.to_networkx())
        400
    """
    names, numbers = number(labels, background, (2, 3))
    edges, lengths = borders(numbers, len(names))
    sizes, means, contrasts = np.bincount(numbers.ravel(), minlength=len(names) + 1), None, None
    if image is not None:
        means = statistics(numbers, image, sizes)[0]
        contrasts = np.linalg.norm(means[edges[:, 0] - 1] - means[edges[:, 1] - 1], axis=1)
    return Adjacency(names, sizes[1:], names[edges - 1], lengths, means, contrasts)
