"""The regions of a label map as polygons that share their borders."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from spit.kernels import Array
from spit.labels.borders import connected_pieces, mark_corners, trace_arcs
from spit.labels.loops import measure
from spit.labels.numbering import number
from spit.labels.rings import join_arcs
from spit.labels.simplification import simplify_arcs
from spit.segmentation.rle import encode_pixels

Polygon = list[Array]
"""Rings of points (x, y), each closed: the outline, then its holes."""


@dataclass(frozen=True, eq=False)
class Polygons(Mapping[int, list[Polygon]]):
    """The answer of :func:`spit.polygons`: for each label its polygons, each the outline and then the holes.

    ``polygons[label]`` is a list of polygons, one for each 4-connected piece of the region. A polygon is a list of
    rings, arrays ``(K, 2)`` of points (x, y) whose last point is the first. All rings lie side by side in ``points``.

    Attributes:
        labels: the labels that occur, ascending, ``(N,)`` int64.
        points: the points of all rings, ``(V, 2)``; int32, or float64 after a transform.
        rings: where each ring begins in ``points``, ``(R + 1,)`` int64.
        pieces: where each polygon begins among the rings, ``(K + 1,)`` int64.
        offsets: where each label begins among the polygons, ``(N + 1,)`` int64.
        transformed: whether the points are in other coordinates than those of pixels.

    Example:
        >>> import numpy as np, spit
        >>> outlines = spit.polygons(np.array([[1, 1, 4], [1, 7, 4]]))
        >>> outlines[4][0][0].tolist()
        [[2, 0], [3, 0], [3, 2], [2, 2], [2, 1], [2, 0]]
        >>> [len(pieces) for pieces in outlines.values()]
        [1, 1, 1]
        >>> outlines.to_coco()[1]["bbox"]
        [2, 0, 1, 2]
    """

    labels: Array
    points: Array
    rings: Array
    pieces: Array
    offsets: Array
    transformed: bool
    _numbers: Array = field(repr=False)

    def __getitem__(self, label: int) -> list[Polygon]:
        place = int(np.searchsorted(self.labels, label))
        if place == len(self.labels) or self.labels[place] != label:
            raise KeyError(label)
        return self._of(place)

    def __iter__(self) -> Iterator[int]:
        return iter(self.labels.tolist())

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Polygons({len(self.labels):,} regions, {len(self.pieces) - 1:,} polygons, {len(self.points):,} points)"

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        """What shapely, geopandas and others read: :meth:`to_geojson`."""
        return self.to_geojson()

    def to_geojson(self, properties: Mapping[str, npt.ArrayLike] | None = None) -> dict[str, Any]:
        """A GeoJSON FeatureCollection, which ``json.dump`` writes: one Polygon or MultiPolygon for each label.

        Args:
            properties: values by name, one for each label in ascending order, such as those of :func:`spit.regions`.
                NaN and infinity, which JSON does not have, become null.

        Raises:
            ValueError: a property has another number of values.

        Note:
            Outlines go counterclockwise, as RFC 7946 asks. It wants longitude and latitude (WGS 84).
        """
        columns = {name: _plain(name, values, len(self.labels)) for name, values in (properties or {}).items()}
        features = []
        for place, label in enumerate(self.labels.tolist()):
            polygons = [[ring.tolist() for ring in polygon] for polygon in self._of(place)]
            geometry = ({"type": "Polygon", "coordinates": polygons[0]} if len(polygons) == 1
                        else {"type": "MultiPolygon", "coordinates": polygons})
            about = {"label": label, **{name: values[place] for name, values in columns.items()}}
            features.append({"type": "Feature", "properties": about, "geometry": geometry})
        return {"type": "FeatureCollection", "features": features}

    def to_coco(self, image_id: int = 0, category_id: int = 1) -> list[dict[str, Any]]:
        """Annotations of COCO, one for each label, which is the ``id``.

        ``segmentation`` lists the outlines. COCO's polygons have no holes, so a region with holes has its exact
        pixels in run lengths instead, as pycocotools reads them. ``area`` and ``bbox`` are those of the pixels.

        Raises:
            ValueError: the polygons were transformed.
        """
        self._check_pixels("COCO")
        height = len(self._numbers)
        sizes, _, boxes, _ = measure(self._numbers[None], len(self.labels), False)
        annotations = []
        for place, label in enumerate(self.labels.tolist()):
            polygons, (_, y0, x0, _, y1, x1) = self._of(place), boxes[place + 1].tolist()
            segmentation: Any = [polygon[0][:-1].ravel().tolist() for polygon in polygons]
            if any(len(polygon) > 1 for polygon in polygons):
                columns, rows = np.nonzero(np.equal(self._numbers[y0:y1, x0:x1].T, place + 1))
                segmentation = encode_pixels(self._numbers.shape, (columns + x0) * height + rows + y0)
            annotations.append({"id": label, "image_id": image_id, "category_id": category_id, "iscrowd": 0,
                                "segmentation": segmentation, "bbox": [x0, y0, x1 - x0, y1 - y0],
                                "area": int(sizes[place + 1])})
        return annotations

    def to_svg(self, image_size: tuple[int, int] | None = None, colors: npt.ArrayLike | None = None) -> str:
        """A picture of the polygons, one path for each label, with its label in ``data-label``.

        Args:
            image_size: height and width of the picture (default: those of the label map).
            colors: uint8 colour of each label, ``(N, 3)``, such as rounded means of :func:`spit.regions`; without them
                the picture is lines only.

        Raises:
            ValueError: the polygons were transformed, or there are not as many colours as labels.
        """
        self._check_pixels("SVG")
        height, width = self._numbers.shape
        fills = ["none"] * len(self.labels)
        if colors is not None:
            rows = np.asarray(colors)
            if rows.shape != (len(self.labels), 3):
                raise ValueError(f"expected a colour for each label, ({len(self.labels)}, 3), got {rows.shape}")
            fills = ["#{:02x}{:02x}{:02x}".format(*row) for row in rows.astype(np.uint8).tolist()]
        down, across = image_size or (height, width)
        lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" '
                 f'viewBox="0 0 {width} {height}" preserveAspectRatio="none" fill-rule="evenodd" stroke-width="0.5" '
                 f'stroke="{"black" if colors is None else "none"}">']
        for place, (label, fill) in enumerate(zip(self.labels.tolist(), fills, strict=True)):
            rings = (ring[:-1].tolist() for polygon in self._of(place) for ring in polygon)
            path = "".join("M" + "L".join(f"{x} {y}" for x, y in ring) + "Z" for ring in rings)
            lines.append(f'<path data-label="{label}" fill="{fill}" d="{path}"/>')
        return "\n".join([*lines, "</svg>", ""])

    def _of(self, place: int) -> list[Polygon]:
        pieces = range(self.offsets[place], self.offsets[place + 1])
        return [[self.points[self.rings[ring] : self.rings[ring + 1]]
                 for ring in range(self.pieces[piece], self.pieces[piece + 1])] for piece in pieces]

    def _check_pixels(self, form: str) -> None:
        if self.transformed:
            raise ValueError(f"expected polygons in pixels, which {form} has; leave transform out")


def polygons(labels: npt.ArrayLike, simplify: float = 0.0, transform: Sequence[float] | None = None, *,
             background: int | None = 0) -> Polygons:
    """Trace the regions of a label map as polygons with holes, on the corners of pixels.

    Borders that two regions share are traced and simplified once, so that polygons leave no gaps and do not overlap.
    Each is valid as OGC and shapely define it, after simplification too.

    Args:
        labels: any integers. A region whose pixels are not 4-connected has a polygon for each piece. Not modified.
        simplify: how far a vertex may lie from the line that replaces it, in pixels, by Douglas and Peucker's rule;
            0 keeps all. Where several borders meet, and at the corners of the map, vertices stay.
        transform: from (x, y) in pixels to other coordinates, as rasterio's: (a, b, c, d, e, f) for x' = a·x + b·y + c
            and y' = d·x + e·y + f. Corner (0, 0) is the upper left one of the first pixel.
        background: label of pixels that belong to no region; None if there is none.

    Shape:
        labels ``(H, W)``.

    Raises:
        TypeError: labels are not integers.
        ValueError: labels have another number of dimensions, simplify is negative, or transform does not have six
            numbers or cannot be inverted.

    Note:
        A vertex goes only if the triangle that it makes with its two neighbours contains no other vertex. So no two
        borders cross and no region vanishes, however large ``simplify`` is. Where a vertex has to stay, the border is
        finer, and what was removed near it lies within twice ``simplify``. Outlines go counterclockwise and holes
        clockwise where y points up; without a transform y points down, and they look the other way round.

    References:
        Douglas, Peucker (1973), Algorithms for the reduction of the number of points required to represent a digitized
        line or its caricature.

    Example:
        >>> import json, spit
        >>> from skimage.data import chelsea
        >>> labels = spit.superpixels(chelsea(), n=200)
        >>> outlines = spit.polygons(labels, simplify=1.5)
        >>> len(outlines), len(outlines[7])  # regions, and pieces of one
        (200, 1)
        >>> text = json.dumps(outlines.to_geojson(spit.regions(labels, chelsea())))
    """
    if not 0 <= simplify < np.inf:
        raise ValueError(f"expected simplify of 0 pixels or more, got {simplify}")
    affine = None if transform is None else _affine(transform)
    names, numbers = number(labels, background)
    pieces, owners = connected_pieces(numbers)
    marks, ends, turns = mark_corners(pieces)
    points, begins, sides, ways = trace_arcs(pieces, marks, ends, turns)
    if simplify > 0:
        points, begins = simplify_arcs(points, begins, marks, simplify)
    points, begins, piece, areas = join_arcs(points, begins, sides, ways)
    order = np.lexsort((areas < 0, piece, owners[piece]))
    lengths = np.diff(begins)[order]
    rings = np.concatenate([[0], np.cumsum(lengths)])
    backwards = affine is not None and _determinant(affine) < 0
    steps = np.arange(len(points)) - np.repeat(rings[:-1], lengths)
    points = points[np.repeat(begins[:-1][order], lengths)
                    + (np.repeat(lengths, lengths) - 1 - steps if backwards else steps)]
    if affine is not None:
        points = points @ affine[:, :2].T + affine[:, 2]
    outlines = np.flatnonzero(areas[order] > 0)
    offsets = np.searchsorted(owners[piece[order][outlines]], np.arange(1, len(names) + 2))
    return Polygons(names, points, rings, np.append(outlines, len(order)), offsets, affine is not None, numbers)


def _affine(transform: Sequence[float]) -> Array:
    """The transform as a matrix, ``(2, 3)``; rasterio's own has a third row."""
    values = np.asarray(tuple(transform), float)
    if values.shape not in ((6,), (9,)) or not np.isfinite(values).all():
        raise ValueError(f"expected a transform of six finite numbers, as rasterio's, got {transform!r}")
    matrix = values[:6].reshape(2, 3)
    if _determinant(matrix) == 0:
        raise ValueError(f"expected a transform that can be inverted, got {transform!r}")
    return matrix


def _determinant(matrix: Array) -> float:
    return float(matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0])


def _plain(name: str, values: npt.ArrayLike, count: int) -> list[Any]:
    """A property of each label as JSON has it."""
    given = np.asarray(values)
    if given.ndim == 0 or len(given) != count:
        raise ValueError(f"expected {count} values of the property {name!r}, one for each label, got shape "
                         f"{given.shape}")
    if np.issubdtype(given.dtype, np.floating):
        finite, given = np.isfinite(given), given.astype(object)
        given[~finite] = None
    plain: list[Any] = given.tolist()
    return plain
