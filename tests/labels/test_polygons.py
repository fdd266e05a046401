"""spit.polygons against shapely: valid, without gaps or overlaps, whatever the labels and the tolerance."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spit
from labels.maps import LABELS
from spit.segmentation.rle import decode_mask

shapely = pytest.importorskip("shapely")
TOLERANCES = st.sampled_from([0, 0.4, 1, 1.5, 4, 100])


def shapes(polygons: spit.Polygons) -> dict[int, "shapely.Geometry"]:
    return {feature["properties"]["label"]: shapely.geometry.shape(feature["geometry"])
            for feature in polygons.to_geojson()["features"]}


@given(LABELS)
def test_they_are_the_pixels_of_their_labels(labels: np.ndarray) -> None:
    found = shapes(spit.polygons(labels, background=None))
    assert list(found) == np.unique(labels).tolist()
    ys, xs = np.indices(labels.shape)
    for label, shape in found.items():
        assert shape.is_valid, shapely.is_valid_reason(shape)
        assert shape.area == (labels == label).sum()
        inside = shapely.contains_xy(shape, xs.ravel() + 0.5, ys.ravel() + 0.5)
        assert np.array_equal(inside.reshape(labels.shape), labels == label)


@given(LABELS, TOLERANCES, st.sampled_from([0, 1, None]))
def test_valid_without_gaps_or_overlaps(labels: np.ndarray, simplify: float, background: int | None) -> None:
    exact, polygons = (spit.polygons(labels, value, background=background) for value in (0, simplify))
    found = shapes(polygons)
    for shape in found.values():
        assert shape.is_valid, shapely.is_valid_reason(shape)
        assert shape.area > 0
        for part in getattr(shape, "geoms", [shape]):
            assert part.exterior.is_ccw
            assert not any(ring.is_ccw for ring in part.interiors)
    assert shapely.coverage_is_valid(list(found.values())), "shared borders have equal vertices"
    assert np.array_equal(polygons.pieces, exact.pieces), "the same holes in the same polygons"
    assert np.array_equal(polygons.offsets, exact.offsets)
    if background not in labels:
        assert shapely.union_all(list(found.values())).equals(shapely.box(0, 0, *labels.shape[::-1]))


@given(LABELS)
def test_each_border_goes_both_ways(labels: np.ndarray) -> None:
    """Vertex by vertex, also after simplification: each side of a ring is the reverse of one of a neighbour."""
    height, width = labels.shape
    sides = [(tuple(a), tuple(b)) for pieces in spit.polygons(labels, 1.5, background=None).values()
             for rings in pieces for ring in rings for a, b in pairwise(ring.tolist())]
    assert len(set(sides)) == len(sides)
    for a, b in sides:
        frame = any(a[axis] == b[axis] and a[axis] in (0, end) for axis, end in ((0, width), (1, height)))
        assert ((b, a) in set(sides)) != frame


@given(LABELS, st.floats(0.1, 5))
def test_vertices_are_near_the_border_they_left(labels: np.ndarray, simplify: float) -> None:
    exact, simple = (spit.polygons(labels, value, background=None) for value in (0, simplify))
    for label in exact:
        before, after = (shapely.union_all([shapely.LinearRing(ring) for rings in polygons[label] for ring in rings])
                         for polygons in (exact, simple))
        assert shapely.hausdorff_distance(before, after, densify=0.1) <= 2 * simplify + 1e-9
        assert {tuple(point) for point in shapely.get_coordinates(after)} <= {
            tuple(point) for point in shapely.get_coordinates(before)}


def test_as_few_vertices_as_shapely() -> None:
    labels = np.hypot(*(np.indices((200, 200)) - 99.5)) < 80
    exact, simple = (spit.polygons(labels, value)[1][0][0] for value in (0, 1.5))
    assert len(exact) > 200
    assert len(simple) <= 1.2 * len(shapely.LinearRing(exact).simplify(1.5).coords)


@pytest.mark.parametrize(("labels", "expected"), [
    ([[7]], {7: [[[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]]}),
    ([[0, 0, 0], [0, 5, 0], [0, 0, 0]], {5: [[[[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]]]}),
    ([[3, 0], [0, 3]], {3: [[[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]], [[[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]]]}),
    ([[1, 1, 1], [1, 0, 1], [1, 1, 1]],
     {1: [[[[0, 0], [3, 0], [3, 3], [0, 3], [0, 0]], [[1, 1], [1, 2], [2, 2], [2, 1], [1, 1]]]]}),
    ([[0, 0]], {}),
])
def test_by_hand(labels: list[list[int]], expected: dict[int, object]) -> None:
    polygons = spit.polygons(np.array(labels))
    assert {label: [[ring.tolist() for ring in rings] for rings in pieces]
            for label, pieces in polygons.items()} == expected


def test_a_hole_that_touches_the_outline_is_a_hole() -> None:
    [[outline, hole]] = spit.polygons(np.array([[1, 1, 1], [1, 0, 1], [1, 1, 0]]))[1]
    assert (len(outline), hole.tolist()) == (7, [[2, 2], [2, 1], [1, 1], [1, 2], [2, 2]])


def test_a_region_between_two_junctions_does_not_vanish() -> None:
    labels = np.array([[1] * 9, [1, 1, 1, 2, 2, 2, 1, 1, 1], [3] * 9])
    for label, shape in shapes(spit.polygons(labels, 50)).items():
        assert shape.area > 0, label


def test_as_a_mapping() -> None:
    polygons = spit.polygons(np.array([[-4, 9], [-4, 2**40]]))
    assert (list(polygons), len(polygons), 9 in polygons, 0 in polygons) == ([-4, 9, 2**40], 3, True, False)
    assert repr(polygons) == "Polygons(3 regions, 3 polygons, 16 points)"
    with pytest.raises(KeyError):
        polygons[5]


@pytest.mark.parametrize(("transform", "box"), [
    ((10, 0, 500, 0, -10, 900), (500, 870, 540, 900)),
    ((10, 0, 500, 0, -10, 900, 0, 0, 1), (500, 870, 540, 900)),
    ((0, 2, 0, 2, 0, 1), (0, 1, 6, 9)),
])
def test_transform(transform: tuple[float, ...], box: tuple[float, ...]) -> None:
    labels = np.zeros((3, 4), int)
    labels[1, 1] = 1
    found = shapes(spit.polygons(labels, transform=transform, background=None))
    assert shapely.union_all(list(found.values())).bounds == box
    for shape in found.values():
        assert shape.is_valid
        assert shape.exterior.is_ccw
    assert found[1].area == abs(transform[0] * transform[4] - transform[1] * transform[3])


def test_geojson_with_properties() -> None:
    image = np.array([[1.0, np.nan], [3.0, 3.0]])
    labels = np.array([[1, 2], [3, 3]])
    polygons = spit.polygons(labels)
    document = json.loads(json.dumps(polygons.to_geojson(spit.regions(labels, image)), allow_nan=False))
    assert [feature["properties"]["mean"] for feature in document["features"]] == [[1.0], [None], [3.0]]
    assert polygons.__geo_interface__ == polygons.to_geojson()
    with pytest.raises(ValueError, match=r"3 values of the property 'x', one for each label, got shape \(2,\)"):
        polygons.to_geojson({"x": [1, 2]})


@given(LABELS)
def test_coco(labels: np.ndarray) -> None:
    for about in json.loads(json.dumps(spit.polygons(labels).to_coco(image_id=4))):
        mask, (x, y, width, height) = labels == about["id"], about["bbox"]
        assert mask.sum() == mask[y : y + height, x : x + width].sum() == about["area"]
        if isinstance(about["segmentation"], dict):
            assert np.array_equal(decode_mask(**about["segmentation"]), mask)
        else:
            assert sum(shapely.Polygon(np.reshape(ring, (-1, 2))).area for ring in about["segmentation"]) == mask.sum()


def test_svg() -> None:
    polygons = spit.polygons(np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]]))
    plain, colored = polygons.to_svg(), polygons.to_svg((30, 60), colors=[[255, 0, 1], [0, 16, 0]])
    assert 'width="3" height="3" viewBox="0 0 3 3"' in plain
    assert 'd="M0 0L3 0L3 3L0 3ZM1 1L1 2L2 2L2 1Z"' in plain
    assert 'width="60" height="30" viewBox="0 0 3 3"' in colored
    assert '<path data-label="5" fill="#001000"' in colored
    with pytest.raises(ValueError, match=r"expected a colour for each label, \(2, 3\), got \(1, 3\)"):
        polygons.to_svg(colors=[[0, 0, 0]])


@pytest.mark.parametrize(("labels", "options", "error", "message"), [
    (np.zeros((2, 2)), {}, TypeError, r"expected integer labels, got float64; labels.astype\(int\)"),
    (np.zeros((2, 2, 2), int), {}, ValueError, r"labels of shape \(H, W\) with at least one pixel, got \(2, 2, 2\)"),
    (np.zeros((0, 2), int), {}, ValueError, r"got \(0, 2\)"),
    (np.full((1, 1), 2**63, np.uint64), {}, ValueError, "labels below 2⁶³"),
    (np.ones((2, 2), int), {"simplify": -1}, ValueError, "expected simplify of 0 pixels or more, got -1"),
    (np.ones((2, 2), int), {"simplify": np.nan}, ValueError, "got nan"),
    (np.ones((2, 2), int), {"transform": (1, 2)}, ValueError, "six finite numbers"),
    (np.ones((2, 2), int), {"transform": (1, 1, 0, 1, 1, 0)}, ValueError, "can be inverted"),
])
def test_errors(labels: np.ndarray, options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        spit.polygons(labels, **options)


@pytest.mark.parametrize("form", ["to_coco", "to_svg"])
def test_no_pixels_after_a_transform(form: str) -> None:
    with pytest.raises(ValueError, match="leave transform out"):
        getattr(spit.polygons(np.ones((2, 2), int), transform=(1, 0, 0, 0, -1, 0)), form)()
