import dataclasses
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from skimage.measure import regionprops
from skimage.segmentation import slic
from torch import Tensor

from spit import kernels
from spit.features import FeatureExtractor
from spit.partition import Hierarchy, Partition
from spit.segmentation import RegionGraph
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer

LEFT = torch.tensor([[0, 0, 1], [0, 2, 1]], dtype=torch.int32)  # three regions
RIGHT = torch.tensor([[0, 0, 0], [1, 1, 1]], dtype=torch.int32)  # two
TALL = torch.tensor([[0], [1], [1], [0]], dtype=torch.int32)


@pytest.fixture
def pair() -> Partition:
    return Partition.of(torch.stack([LEFT, RIGHT]), torch.tensor([3, 2]))


@pytest.fixture
def mixed(pair: Partition) -> Partition:
    return Partition.cat([pair, Partition.of(TALL[None], torch.tensor([2])),
                          Partition.of(RIGHT[None], torch.tensor([2]))])


class TestPartition:
    def test_labels_counts_offsets(self, pair: Partition) -> None:
        assert len(pair) == 2
        assert torch.equal(pair.labels, torch.stack([LEFT, RIGHT]))
        assert pair.counts.tolist() == [3, 2]
        assert pair.offsets.tolist() == [0, 3, 5]
        assert pair.offsets.dtype == torch.int64

    def test_labels_of_mixed_sizes(self, mixed: Partition) -> None:
        assert len(mixed) == 4
        assert isinstance(mixed.labels, tuple)
        for got, expected in zip(mixed.labels, [LEFT, RIGHT, TALL, RIGHT], strict=True):
            assert torch.equal(got, expected)
        assert mixed.counts.tolist() == [3, 2, 2, 2]
        assert mixed.offsets.tolist() == [0, 3, 5, 7, 9]

    def test_sizes(self, pair: Partition, mixed: Partition) -> None:
        assert pair.sizes().tolist() == [3, 2, 1, 3, 3]
        assert mixed.sizes().tolist() == [3, 2, 1, 3, 3, 2, 2, 3, 3]
        assert mixed.sizes().dtype == torch.int64

    def test_boxes(self, mixed: Partition) -> None:
        assert mixed.boxes().tolist() == [
            [0, 0, 2, 2], [0, 2, 2, 3], [1, 1, 2, 2],
            [0, 0, 1, 3], [1, 0, 2, 3],
            [0, 0, 4, 1], [1, 0, 3, 1],
            [0, 0, 1, 3], [1, 0, 2, 3],
        ]
        assert mixed.boxes().dtype == torch.int32

    def test_centroids(self, mixed: Partition, photo: Callable[[str, int], Tensor]) -> None:
        third = torch.tensor(1 / 3).item()
        expected = [[third, third], [0.5, 2], [1, 1], [0, 1], [1, 1], [1.5, 0], [1.5, 0], [0, 1], [1, 1]]
        assert mixed.centroids().tolist() == expected
        assert mixed.centroids().dtype == torch.float32
        labels = slic(photo("astronaut", 96).movedim(0, -1).numpy(), 30)
        centers = np.array([region.centroid for region in regionprops(labels)])
        np.testing.assert_allclose(Partition.from_labels(labels).centroids().numpy(), centers, rtol=1e-6)

    def test_adjacency(self, mixed: Partition) -> None:
        edges, lengths = mixed.adjacency()
        assert edges.tolist() == [[0, 1], [0, 2], [1, 2], [3, 4], [5, 6], [7, 8]]
        assert lengths.tolist() == [1, 2, 1, 3, 2, 3]
        assert (edges.dtype, lengths.dtype) == (torch.int64, torch.int64)

    @pytest.mark.parametrize("size", [(1, 1), (1, 5), (4, 1), (3, 3)])
    def test_one_region_touches_nothing(self, size: tuple[int, int]) -> None:
        edges, lengths = Partition.of(torch.zeros(2, *size, dtype=torch.int32), [1, 1]).adjacency()
        assert (edges.shape, lengths.shape) == ((0, 2), (0,))

    @given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
    def test_adjacency_as_a_loop_over_pixels_finds_it(self, height: int, width: int, regions: int, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        part = Partition.from_labels(torch.randint(regions, (2, height, width), generator=draw))
        borders: Counter[tuple[int, ...]] = Counter()
        for b, y, x in np.ndindex(2, height, width):
            for below, right in ((y + 1, x), (y, x + 1)):
                if below < height and right < width:
                    ends = {int(part.offsets[b] + part.labels[b, i, j]) for i, j in ((y, x), (below, right))}
                    borders[tuple(sorted(ends))] += len(ends) > 1
        found = sorted((pair, length) for pair, length in borders.items() if length)
        adjacency = part.adjacency()
        assert [(tuple(pair), length) for pair, length in zip(*map(Tensor.tolist, adjacency), strict=True)] == found
        assert torch.equal(adjacency.edges[adjacency.edges[:, 0] >= part.offsets[1]] - part.offsets[1],
                           part[1].adjacency().edges)

    def test_adjacency_is_the_graph_of_segmentation(self, photo: Callable[[str, int], Tensor]) -> None:
        image = photo("coffee", 96)
        part = SuperpixelTokenizer(levels=3)(image)
        graph = RegionGraph.of(image, part.labels[0])
        assert np.array_equal(part.adjacency().edges.numpy(), graph.pairs)
        assert np.array_equal(part.adjacency().lengths.numpy(), graph.lengths)
        np.testing.assert_allclose(part.centroids().numpy(), graph.centers, rtol=1e-6)

    def test_paint(self, pair: Partition) -> None:
        painted = pair.paint(torch.tensor([10.0, 11, 12, 20, 21]))
        assert painted.tolist() == [[[10, 10, 11], [10, 12, 11]], [[20, 20, 20], [21, 21, 21]]]

    def test_paint_vectors_keeps_dtype(self, pair: Partition) -> None:
        colors = torch.arange(15, dtype=torch.uint8).reshape(5, 3)
        painted = pair.paint(colors)
        assert painted.shape == (2, 2, 3, 3)
        assert painted.dtype == torch.uint8
        assert painted[1, 1, 2].tolist() == [12, 13, 14]

    def test_paint_mixed_sizes(self, mixed: Partition) -> None:
        painted = mixed.paint(torch.arange(9))
        assert [image.tolist() for image in painted] == [
            [[0, 0, 1], [0, 2, 1]], [[3, 3, 3], [4, 4, 4]], [[5], [6], [6], [5]], [[7, 7, 7], [8, 8, 8]]]

    def test_paint_is_differentiable(self, pair: Partition) -> None:
        values = torch.zeros(5, requires_grad=True)
        pair.paint(values).sum().backward()
        assert torch.equal(values.grad, pair.sizes().float())

    @pytest.mark.parametrize("rows", [0, 4, 6])
    def test_paint_wants_a_value_a_region(self, pair: Partition, rows: int) -> None:
        with pytest.raises(ValueError, match=rf"each of the 5 regions, got shape \({rows}, 2\)"):
            pair.paint(torch.zeros(rows, 2))

    @pytest.mark.parametrize(("rows", "told"), [(4, True), (6, False)])
    def test_paint_tells_of_the_token_budget_where_rows_are_missing(
        self, pair: Partition, rows: int, told: bool
    ) -> None:
        with pytest.raises(ValueError, match="5 regions") as caught:
            pair.paint(torch.zeros(rows, 2))
        assert ("out.kept" in str(caught.value)) == told

    def test_repr(self, pair: Partition, mixed: Partition) -> None:
        assert repr(pair) == "Partition(2 images of 2×3, regions [3, 2])"
        assert repr(mixed) == "Partition(2 images of 2×3, 1 image of 4×1, 1 image of 2×3, regions [3, 2, 2, 2])"
        assert repr(Partition.cat([pair] * 4)) == "Partition(8 images of 2×3, regions [3, 2, 3, 2, 3, 2, … 2 more])"
        assert repr(Partition.cat([mixed] * 4)).count("of 4×1") == 3

    def test_boundaries(self, pair: Partition, mixed: Partition) -> None:
        left = [[False, True, False], [True, True, False]]
        right = [[True, True, True], [False, False, False]]
        assert pair.boundaries().tolist() == [left, right]
        maps = mixed.boundaries()
        assert isinstance(maps, tuple)
        assert maps[2].tolist() == [[True], [False], [True], [False]]
        assert maps[3].tolist() == right

    def test_getitem(self, mixed: Partition) -> None:
        for index, labels in enumerate([LEFT, RIGHT, TALL, RIGHT]):
            for one in (mixed[index], mixed[index - 4]):
                assert len(one) == 1
                assert torch.equal(one.labels, labels[None])
                assert one.offsets.tolist() == [0, int(labels.max()) + 1]
        for index in (4, -5):
            with pytest.raises(IndexError, match=f"expected image 0 to 3, or -4 to -1 from the end, got {index}"):
                mixed[index]
        assert len(list(mixed)) == 4

    def test_getitem_keeps_the_frames_of_its_image(self) -> None:
        part = PatchTokenizer(4)([torch.zeros(3, 8, 8), torch.zeros(3, 3, 5)])
        assert part[0].frames.tolist() == [[0, 0, 4, 4], [0, 4, 4, 8], [4, 0, 8, 4], [4, 4, 8, 8]]
        assert part[1].frames.tolist() == [[0, 0, 4, 4], [0, 4, 4, 8]]

    def test_cat_drops_frames_unless_all_have_them(self, pair: Partition) -> None:
        patches = PatchTokenizer(2)(torch.zeros(3, 2, 3))
        assert Partition.cat([patches, pair]).frames is None
        assert Partition.cat([patches, patches]).frames.shape == (4, 4)

    def test_cat_of_getitem_is_the_same_partition(self, mixed: Partition) -> None:
        again = Partition.cat([mixed[index] for index in range(4)])
        assert torch.equal(again.offsets, mixed.offsets)
        assert torch.equal(again.sizes(), mixed.sizes())
        for got, expected in zip(again.labels, mixed.labels, strict=True):
            assert torch.equal(got, expected)

    def test_images_of_one_size_have_one_tensor_of_labels(self, pair: Partition) -> None:
        """Also where their blocks came apart: a list of uint8 and float images, or ``cat``."""
        joined = Partition.cat([pair, pair])
        assert isinstance(joined.labels, Tensor)
        assert joined.labels.shape == (4, 2, 3)
        assert joined.boundaries().shape == (4, 2, 3)
        assert joined.paint(torch.arange(10)).shape == (4, 2, 3)
        images = [torch.zeros(3, 4, 4), torch.zeros(3, 4, 4, dtype=torch.uint8)]
        assert isinstance(SuperpixelTokenizer(levels=1)(images).labels, Tensor)


class TestFromLabels:
    @pytest.mark.parametrize("shift", [-7, 0, 1, 2**40])
    @pytest.mark.parametrize("array", [False, True])
    def test_any_numbering_becomes_0_to_n(self, shift: int, array: bool) -> None:
        maps = torch.tensor([[[5, 5, 9], [5, 2, 9]], [[3, 3, 3], [8, 8, 8]]]) + shift
        part = Partition.from_labels(maps.numpy() if array else maps)
        assert part.labels.tolist() == [[[1, 1, 2], [1, 0, 2]], [[0, 0, 0], [1, 1, 1]]]  # in the order of the labels
        assert part.offsets.tolist() == [0, 3, 5]
        assert (part.labels.dtype, part.offsets.dtype) == (torch.int32, torch.int64)
        dataclasses.replace(part)  # which checks it

    def test_one_map_and_lists_of_maps(self, mixed: Partition) -> None:
        assert Partition.from_labels(LEFT).labels.tolist() == [LEFT.tolist()]
        again = Partition.from_labels([LEFT.numpy().astype(np.uint16), RIGHT, TALL.long(), RIGHT.numpy()])
        assert again.offsets.tolist() == mixed.offsets.tolist()
        for got, expected in zip(again.labels, mixed.labels, strict=True):
            assert torch.equal(got, expected)

    def test_the_segments_of_scikit_image(self, photo: Callable[[str, int], Tensor]) -> None:
        image = photo("astronaut", 48)
        part = Partition.from_labels(slic(image.movedim(0, -1).numpy(), 20))
        assert part.sizes().min() > 0
        assert FeatureExtractor()(image, part).values.shape[0] == part.counts[0]

    def test_the_input_is_not_modified(self) -> None:
        maps = torch.tensor([[4, 7]])
        Partition.from_labels(maps)
        assert maps.tolist() == [[4, 7]]

    @pytest.mark.parametrize(("labels", "error", "message"), [
        (torch.zeros(2, 2), TypeError, "labels as a tensor of integers, got Tensor of torch.float32"),
        ([np.zeros((2, 2))], TypeError, "label map as a tensor of integers, got ndarray of float64"),
        ([[0, 1]], TypeError, "label map as a tensor of integers, got list"),
        (torch.zeros(2, dtype=torch.int32), ValueError, r"labels with 2 or 3 dimensions, got shape \(2,\)"),
        ([torch.zeros(1, 2, 2, dtype=torch.int32)], ValueError, "label map with 2 dimensions"),
        ([], ValueError, r"at least one label map with pixels, got \[\]"),
        (torch.zeros(1, 0, 3, dtype=torch.int32), ValueError, r"with pixels, got \[\(0, 3\)\]"),
    ])
    def test_what_is_no_label_map(self, labels: object, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            Partition.from_labels(labels)


OPTIONS = [
    {"levels": 3},
    {"levels": 2, "merge_threshold": 0.1},
    {"levels": 2, "max_tokens": 7},
    {"levels": 3, "merge_threshold": 0.05, "max_tokens": 3},
    {"levels": 1},
]


class TestHierarchy:
    @pytest.fixture
    def images(self, photo: Callable[[str, int], Tensor]) -> list[Tensor]:
        return [photo("astronaut", 24), photo("coffee", 24), photo("chelsea", 24)[:, :17], photo("rocket", 24)]

    @pytest.mark.parametrize("options", OPTIONS)
    def test_parents_lead_from_each_level_to_the_next(self, images: list[Tensor], options: dict[str, float]) -> None:
        hier = SuperpixelTokenizer(**options).hierarchy(images)
        steps = options["levels"] + ("merge_threshold" in options) + ("max_tokens" in options)
        assert len(hier) == steps + 1
        assert len(hier.parents) == steps
        assert len(list(hier)) == len(hier)
        for t, parents in enumerate(hier.parents):
            fine, coarse = hier[t], hier[t + 1]
            assert parents.shape == (int(fine.offsets[-1]),)
            for b in range(4):
                own = parents[fine.offsets[b] : fine.offsets[b + 1]].long()
                assert torch.equal(own[fine.labels[b].long()], coarse.labels[b].long())
                assert own.unique().tolist() == list(range(int(coarse.counts[b])))

    @pytest.mark.parametrize("options", OPTIONS)
    def test_the_last_level_is_what_the_tokenizer_says(self, images: list[Tensor], options: dict[str, float]) -> None:
        tokenizer = SuperpixelTokenizer(**options)
        hier, part = tokenizer.hierarchy(images), tokenizer(images)
        assert torch.equal(hier[-1].offsets, part.offsets)
        for got, expected in zip(hier[-1].labels, part.labels, strict=True):
            assert torch.equal(got, expected)
        assert torch.equal(hier[-2].offsets, hier[len(hier) - 2].offsets)

    def test_level_zero_is_single_pixels(self, images: list[Tensor]) -> None:
        pixels = SuperpixelTokenizer(levels=1).hierarchy(images)[0]
        assert pixels.counts.tolist() == [576, 576, 408, 576]
        for labels, image in zip(pixels.labels, images, strict=True):
            assert torch.equal(labels.flatten(), torch.arange(image[0].numel(), dtype=torch.int32))
        assert pixels.sizes().unique().tolist() == [1]

    def test_counts(self, images: list[Tensor]) -> None:
        hier = SuperpixelTokenizer(levels=3).hierarchy(images)
        assert hier.counts.shape == (4, 4)
        for t, part in enumerate(hier):
            assert torch.equal(hier.counts[t], part.counts)
            for b in range(4):
                assert int(part.labels[b].max()) + 1 == hier.counts[t, b]
        assert (hier.counts.diff(dim=0) < 0).all()

    def test_a_tensor_and_cat_of_its_halves_agree(self, images: list[Tensor]) -> None:
        batch = torch.stack([images[0], images[1], images[3]])
        tokenizer = SuperpixelTokenizer(levels=2)
        whole = tokenizer.hierarchy(batch)
        halves = Hierarchy.cat([tokenizer.hierarchy(batch[:2]), tokenizer.hierarchy(batch[2])])
        assert whole[2].labels.shape == (3, 24, 24)
        assert torch.equal(whole.counts, halves.counts)
        for t in range(3):
            for b in range(3):
                assert torch.equal(whole[t].labels[b], halves[t].labels[b])

    def test_one_image_alone(self, images: list[Tensor]) -> None:
        hier = SuperpixelTokenizer(levels=2).hierarchy(images[2])
        assert [part.labels.shape for part in hier] == [(1, 17, 24)] * 3

    @pytest.mark.parametrize("refine", [0, 2])
    @pytest.mark.parametrize("count", [1, 2, 7, 30, 100, 300, 408])
    def test_at_any_count(self, images: list[Tensor], pieces: Callable[[Tensor], int], count: int, refine: int) -> None:
        hier = SuperpixelTokenizer(levels=3, refine=refine).hierarchy(images)
        part = hier.at(count)
        assert part.counts.tolist() == [count] * 4
        for b, labels in enumerate(part.labels):
            assert pieces(labels) == count
            for level in hier:  # nested: below coarser levels, above finer ones
                pairs = torch.stack([labels.flatten(), level.labels[b].flatten()]).unique(dim=1)
                assert pairs.shape[1] == max(count, int(level.counts[b]))

    def test_at_the_count_of_a_level_is_that_level(self, images: list[Tensor]) -> None:
        hier = SuperpixelTokenizer(levels=3).hierarchy(images[2])
        for level in hier:
            assert torch.equal(hier.at(int(level.counts[0])).labels, level.labels)

    def test_at_joins_what_is_most_alike_and_crosses_nothing(self) -> None:
        stripes = [0] * 4 + [40] * 4 + [150] * 4 + [200] * 4
        image = torch.tensor([[stripes]], dtype=torch.uint8).expand(3, 4, -1)
        hier = SuperpixelTokenizer(levels=2, similarity="variance", self_loop="none").hierarchy(image)
        assert hier.counts[:, 0].tolist() == [64, 4, 2]
        assert hier.at(3).labels[0, 0].tolist() == [0] * 4 + [1] * 4 + [2] * 8  # contrast spreads dark tones

    @pytest.mark.parametrize("count", [0, -1, 409])
    def test_at_no_such_count(self, images: list[Tensor], count: int) -> None:
        with pytest.raises(ValueError, match=f"1 to 408, the pixels of an image, got {count}"):
            SuperpixelTokenizer(levels=1).hierarchy(images).at(count)

    @pytest.mark.parametrize("count", [2.5, [3], True])
    def test_at_a_whole_number(self, images: list[Tensor], count: object) -> None:
        with pytest.raises(TypeError, match="expected a whole number of regions, got"):
            SuperpixelTokenizer(levels=1).hierarchy(images).at(count)

    @pytest.mark.parametrize("level", [3, -4, 100])
    def test_no_such_level(self, images: list[Tensor], level: int) -> None:
        hier = SuperpixelTokenizer(levels=2).hierarchy(images)
        with pytest.raises(IndexError, match=f"^expected level 0 to 2, or -3 to -1 from the end, got {level}$"):
            hier[level]

    def test_repr(self, images: list[Tensor]) -> None:
        hier = SuperpixelTokenizer(levels=2).hierarchy(images[:3])
        totals = hier.counts.sum(1).tolist()
        assert repr(hier) == (f"Hierarchy(levels 0 to 2, 2 images of 24×24, 1 image of 17×24, "
                              f"regions by level {totals})")


def test_a_partition_owns_its_labels() -> None:
    labels = torch.zeros(1, 4, 4, dtype=torch.int32)
    part = Partition.of(labels, [1])
    labels[:] = 2**30
    assert part.boxes().tolist() == [[0, 0, 4, 4]]


@pytest.mark.parametrize("label", [1, -1, 2**30])
def test_labels_that_were_changed_since_are_not_indexed_with(label: int) -> None:
    part = Partition.of(torch.zeros(1, 4, 4, dtype=torch.int32), [1])
    part.blocks[0][0, 2, 2] = label
    images = torch.rand(1, 3, 4, 4)
    extractor = FeatureExtractor()
    for work in (part.boxes, lambda: extractor(images, part),
                 lambda: SuperpixelTokenizer(refine=1).refined(part, images),
                 lambda: kernels.position_histogram(part.blocks[0], part.offsets, 4, 0.025),
                 lambda: kernels.gradient_histogram(images[:, :2], part.blocks[0], part.offsets, 4, 0.025)):
        with kernels.backend("numba"), pytest.raises(ValueError, match="expected labels 0 to 0, got"):
            work()


@pytest.mark.parametrize(("label", "count"), [(1, 1), (5, 3), (-1, 2)])
def test_a_partition_that_was_refused_cannot_write_outside_its_memory(label: int, count: int) -> None:
    part = object.__new__(Partition)
    with pytest.raises(ValueError, match="expected labels 0 to"):
        part.__init__((torch.full((1, 4, 4), label),), torch.tensor([0, count]))  # type: ignore[misc]
    with kernels.backend("numba"), pytest.raises((ValueError, TypeError)):
        part.boxes()



def test_partitions_are_equal_if_their_regions_are() -> None:
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    tokenizer = SuperpixelTokenizer(levels=2)
    both = tokenizer(images)
    assert both == tokenizer(images) == Partition.cat([tokenizer(images[:1]), tokenizer(images[1:])])
    assert both[0] != both[1]
    assert both != both[0]
    assert both != "a partition"
    patches = PatchTokenizer(16)(images)
    assert patches == PatchTokenizer(16)(images)
    assert patches != Partition.of(patches.labels, patches.counts)  # one has frames
    with pytest.raises(TypeError, match="unhashable"):
        hash(both)


def test_regions_that_cannot_be_joined() -> None:
    """The upper level joins the diagonals of 2 × 2 pixels."""
    parents, offsets = torch.tensor([0, 1, 1, 0]), [torch.tensor([0, 4]), torch.tensor([0, 2])]
    hier = Hierarchy._trusted(((1, 2, 2),), (parents,), tuple(offsets), (torch.zeros(1, 3, 2, 2, dtype=torch.int16),))
    with pytest.raises(ValueError, match="expected connected regions, of which 3 can be made"):
        hier.at(3)
