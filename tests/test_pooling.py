"""From cells and pixels to regions, beside plain loops with fractions, torch's own pooling and scikit-image."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from skimage.measure import regionprops
from skimage.segmentation import slic
from torch import Tensor
from torch.nn import functional as F

from spit import Partition, PatchTokenizer, SuperpixelTokenizer, pool
from spit.pooling import cell_shares

LEFT = torch.tensor([[0, 0, 1], [0, 2, 1]])
RIGHT = torch.tensor([[0, 0, 0], [1, 1, 1]])
TALL = torch.tensor([[0], [1], [1], [0]])
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")


@pytest.fixture
def mixed() -> Partition:
    return Partition.from_labels([LEFT, RIGHT, TALL, RIGHT])


@pytest.fixture(scope="module")
def photos(photo: Callable[[str, int], Tensor]) -> Tensor:
    return torch.stack([photo(name, 48) for name in ("astronaut", "coffee", "chelsea", "rocket")])


@pytest.fixture(scope="module")
def part(photos: Tensor) -> Partition:
    return SuperpixelTokenizer(levels=3)(photos)


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def overlap(pixel: int, cell: int, pixels: int, cells: int) -> Fraction:
    """What a pixel and a cell of an axis share, in pixels."""
    side = Fraction(pixels, cells)
    return max(min(Fraction(pixel + 1), (cell + 1) * side) - max(Fraction(pixel), cell * side), Fraction(0))


def areas(labels: Tensor, h: int, w: int) -> dict[int, dict[tuple[int, int], Fraction]]:
    """The pixels that each region shares with each cell."""
    height, width = labels.shape
    found: dict[int, dict[tuple[int, int], Fraction]] = {}
    for y, x in np.ndindex(height, width):
        cells = found.setdefault(int(labels[y, x]), {})
        for i, j in np.ndindex(h, w):
            area = overlap(y, i, height, h) * overlap(x, j, width, w)
            if area > 0:
                cells[i, j] = cells.get((i, j), Fraction(0)) + area
    return found


def plain_pool(labels: Tensor, features: Tensor, reduce: str) -> list[list[float]]:
    rows = []
    for _, cells in sorted(areas(labels, *features.shape[1:]).items()):
        means, largest = [], []
        for channel in features.tolist():
            means.append(float(sum(area * Fraction(channel[i][j]) for (i, j), area in cells.items())
                               / sum(cells.values())))
            largest.append(max(channel[i][j] for i, j in cells))
        rows.append({"mean": means, "max": largest, "both": means + largest}[reduce])
    return rows


SIDES = st.integers(1, 7)
LABELS = st.builds(lambda height, width, count, seed: torch.randint(count, (height, width),
                                                                    generator=torch.Generator().manual_seed(seed)),
                   SIDES, SIDES, st.integers(1, 5), st.integers(0, 99))


class TestPool:
    @given(labels=LABELS, h=st.integers(1, 9), w=st.integers(1, 9), reduce=st.sampled_from(["mean", "max", "both"]))
    def test_as_loops_over_pixels_and_cells_do(self, labels: Tensor, h: int, w: int, reduce: str) -> None:
        part, features = Partition.from_labels(labels), draw(2, h, w)
        if labels.shape[0] * w != labels.shape[1] * h and labels.shape[0] * h == labels.shape[1] * 2:
            features = draw(3, h, w)  # two channels would be the rows of a channels-last map
        got = pool(features[None], part, reduce)
        expected = torch.tensor(plain_pool(part.labels[0], features, reduce))
        assert got.dtype == torch.float32
        torch.testing.assert_close(got, expected, rtol=1e-6, atol=1e-7)
        if reduce != "mean":
            assert torch.equal(got[:, -len(features) :], expected[:, -len(features) :])

    @pytest.mark.parametrize(("reduce", "width"), [("mean", 5), ("max", 5), ("both", 10)])
    @pytest.mark.parametrize("side", [1, 3, 7, 12, 48, 100])
    def test_shapes(self, part: Partition, reduce: str, width: int, side: int) -> None:
        features = draw(4, 5, side, side)
        rows = pool(features, part, reduce)
        assert rows.shape == (int(part.offsets[-1]), width)
        assert part.paint(rows).shape == (4, 48, 48, width)

    def test_both_is_mean_and_max(self, part: Partition) -> None:
        features = draw(4, 3, 12, 12)
        both = torch.cat([pool(features, part), pool(features, part, "max")], 1)
        assert torch.equal(pool(features, part, "both"), both)

    @pytest.mark.parametrize("factor", [1, 2, 4])
    def test_squares_are_average_and_max_pooling(self, factor: int) -> None:
        part = PatchTokenizer(8)(torch.zeros(2, 3, 32, 48))
        features = draw(2, 3, 32 // factor, 48 // factor)
        means, largest = (function(features, 8 // factor).flatten(2).mT.flatten(0, 1)
                          for function in (F.avg_pool2d, F.max_pool2d))
        torch.testing.assert_close(pool(features, part), means)
        assert torch.equal(pool(features, part, "max"), largest)

    def test_a_square_a_cell_is_the_map_itself(self) -> None:
        part = PatchTokenizer(16)(torch.zeros(2, 3, 32, 48))
        features = draw(2, 7, 2, 3)
        for reduce in ("mean", "max"):
            assert torch.equal(pool(features, part, reduce), features.flatten(2).mT.flatten(0, 1))

    @pytest.mark.parametrize("scale", [1, 2])
    def test_painted_values_come_back(self, part: Partition, scale: int) -> None:
        values = draw(int(part.offsets[-1]), 3)
        painted = part.paint(values).movedim(-1, 1).repeat_interleave(scale, 2).repeat_interleave(scale, 3)
        for reduce in ("mean", "max"):
            assert torch.equal(pool(painted, part, reduce), values)

    def test_sums_over_the_image_are_the_map_s(self, part: Partition) -> None:
        """Regions share out what the map has: Σ |v| · mean_v is the mean of the map, times the pixels."""
        features = draw(4, 3, 14, 10, dtype=torch.float64)
        shares = (pool(features, part) * part.sizes()[:, None]).split(list(part.host_counts))
        for rows, one in zip(shares, features, strict=True):
            torch.testing.assert_close(rows.sum(0) / 48**2, one.mean((1, 2)))

    @pytest.mark.usefixtures("torch_threads")
    @pytest.mark.parametrize("reduce", ["mean", "max", "both"])
    @pytest.mark.parametrize("side", [5, 12, 100])
    def test_an_image_alone_and_in_any_batch(self, part: Partition, reduce: str, side: int) -> None:
        features = draw(4, 16, side, side).requires_grad_()
        rows = pool(features, part, reduce)
        rows.square().sum().backward()
        for b, expected in enumerate(rows.split(list(part.host_counts))):
            alone = features.detach()[b : b + 1].requires_grad_()
            own = pool(alone, part[b], reduce)
            own.square().sum().backward()
            assert torch.equal(own, expected)
            assert torch.equal(alone.grad[0], features.grad[b])
        order = [2, 0, 3, 1]
        again = pool(features[order], Partition.cat([part[b] for b in order]), reduce)
        assert torch.equal(again, torch.cat([rows.split(list(part.host_counts))[b] for b in order]))

    def test_lists_of_maps_of_several_sizes(self, mixed: Partition) -> None:
        maps = [draw(3, *size) for size in ((2, 3), (5, 4), (1, 1), (2, 2))]
        rows = pool(maps, mixed, "both")
        assert rows.shape == (9, 6)
        for b, one in enumerate(maps):
            own = rows[mixed.offsets[b] : mixed.offsets[b + 1]]
            assert torch.equal(own, pool([one], mixed[b], "both"))
            assert torch.equal(own, pool(one[None], mixed[b], "both"))

    def test_maps_of_one_size_for_images_of_several(self, mixed: Partition) -> None:
        features = draw(4, 3, 2, 2)
        assert torch.equal(pool(features, mixed), pool(list(features), mixed))

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
    def test_the_dtype_stays(self, part: Partition, dtype: torch.dtype) -> None:
        features = draw(4, 3, 12, 12).to(dtype)
        rows = pool(features, part, "both")
        assert rows.dtype == dtype
        assert torch.equal(rows, pool(features.double(), part, "both").to(dtype))

    def test_in_any_layout(self, part: Partition) -> None:
        features = draw(4, 12, 12, 3).movedim(-1, 1)
        assert torch.equal(pool(features, part), pool(features.contiguous(), part))

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    @pytest.mark.parametrize("reduce", ["mean", "max"])
    def test_non_finite_cells_reach_their_own_regions(self, value: float, reduce: str) -> None:
        features = torch.zeros(1, 2, 2, 3)
        features[0, 0, 0, 0] = value
        part = Partition.from_labels(torch.tensor([[0, 0, 1, 1, 2, 2], [0, 3, 3, 1, 2, 2]]))
        assert pool(features, part, reduce).isfinite().tolist() == [
            [False, True], [True, True], [True, True], [True, True]]

    @pytest.mark.parametrize("reduce", ["mean", "max", "both"])
    @pytest.mark.parametrize("size", [(2, 2), (3, 5), (1, 4)])
    def test_gradcheck(self, mixed: Partition, reduce: str, size: tuple[int, int]) -> None:
        features = draw(4, 5, *size, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(lambda features: pool(features, mixed, reduce), (features,))
        assert torch.autograd.gradgradcheck(lambda features: pool(features, mixed, reduce), (features,))

    def test_inputs_are_not_modified(self, part: Partition) -> None:
        features, labels = draw(4, 3, 12, 12), part.labels.clone()
        before = features.clone()
        pool(features, part, "both")
        assert torch.equal(features, before)
        assert torch.equal(part.labels, labels)

    @pytest.mark.parametrize(("features", "error", "message"), [
        (torch.zeros(3, 2, 2, 2), ValueError, "^expected features of 4 images, got 3$"),
        (torch.zeros(3, 2, 2), ValueError, r"^expected features of shape \(B, C, H, W\), or a list of such maps "
                                           r"without B, got \(3, 2, 2\)$"),
        ([torch.zeros(3, 2, 2)] * 3, ValueError, "features of 4 images, got 3$"),
        ([torch.zeros(1, 3, 2, 2)] * 4, ValueError, r"got \(1, 3, 2, 2\)$"),
        ([torch.zeros(3, 2, 2), *[torch.zeros(2, 2, 2)] * 3], ValueError, r"got \(3, 2, 2\), \(2, 2, 2\)$"),
        (torch.zeros(4, 3, 0, 2), ValueError, r"got \(4, 3, 0, 2\)$"),
        (torch.zeros(4, 3, 2, 2, dtype=torch.uint8), TypeError,
         r"^expected floating features, got torch.uint8; call .float\(\)$"),
        (np.zeros((4, 3, 2, 2)), TypeError, "^expected features as a tensor, or a list with a tensor for each image, "
                                            "got ndarray$"),
        ([np.zeros((3, 2, 2))] * 4, TypeError, "got ndarray$"),
        ([], TypeError, "got an empty list$"),
        (None, TypeError, "got NoneType$"),
        (torch.zeros(4, 3, 2, 2, device="meta"), ValueError, "features on cpu, where the partition is, got meta$"),
    ])
    def test_what_are_no_features(
        self, mixed: Partition, features: object, error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            pool(features, mixed)

    @pytest.mark.parametrize("shape", [(4, 12, 12, 96), (4, 7, 7, 768), (4, 48, 48, 1)])
    def test_channels_that_are_last(self, part: Partition, shape: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match=r"channels first, \(B, C, h, w\), .* for images of 48×48; call .movedim"):
            pool(torch.zeros(shape), part)
        assert pool(torch.zeros(shape).movedim(-1, 1), part).shape[1] == shape[-1]

    def test_no_partition_and_no_such_reduction(self, part: Partition) -> None:
        with pytest.raises(TypeError, match=r"^expected a spit.Partition, got Tensor; Partition.from_labels makes one"):
            pool(draw(4, 3, 12, 12), part.labels)
        with pytest.raises(ValueError, match="reduce to be one of mean, max, both, got 'sum'"):
            pool(draw(4, 3, 12, 12), part, "sum")

    @CUDA
    @pytest.mark.parametrize("reduce", ["mean", "max", "both"])
    @pytest.mark.parametrize("side", [5, 12, 100])
    def test_on_a_gpu(self, part: Partition, reduce: str, side: int) -> None:
        features = draw(4, 16, side, side)
        on_gpu = pool(features.cuda(), part.to("cuda"), reduce)
        torch.testing.assert_close(on_gpu.cpu(), pool(features, part, reduce))
        for b, expected in enumerate(on_gpu.split(list(part.host_counts))):
            assert torch.equal(pool(features[b : b + 1].cuda(), part[b].to("cuda"), reduce), expected)


class TestPoolPixels:
    """Partition.pool."""

    @pytest.mark.parametrize("reduce", ["mean", "sum", "max"])
    @given(labels=LABELS, seed=st.integers(0, 9))
    def test_as_loops_over_pixels_do(self, labels: Tensor, seed: int, reduce: str) -> None:
        part, values = Partition.from_labels(labels), draw(2, *labels.shape, seed=seed)
        inside = [values[:, part.labels[0] == label].double() for label in range(int(part.counts))]
        expected = torch.stack([{"mean": one.mean(1), "sum": one.sum(1), "max": one.amax(1)}[reduce] for one in inside])
        torch.testing.assert_close(part.pool(values[None], reduce), expected.float())
        assert torch.equal(part.pool(values[:1], reduce), part.pool(values[None], reduce)[:, 0])

    @given(labels=LABELS, seed=st.integers(0, 9))
    def test_majority(self, labels: Tensor, seed: int) -> None:
        classes = torch.randint(-1, 3, labels.shape, generator=torch.Generator().manual_seed(seed)) * 100
        part = Partition.from_labels(labels)
        expected = []
        for label in range(int(part.counts)):
            votes = Counter(classes[part.labels[0] == label].tolist())
            expected.append(min(votes, key=lambda name: (-votes[name], name)))  # the smallest of the most frequent
        got = part.pool(classes[None], "majority")
        assert got.dtype == torch.int64
        assert got.tolist() == expected

    def test_the_mean_is_scikit_image_s(self, photos: Tensor) -> None:
        labels = slic(photos[0].movedim(0, -1).numpy(), 20)
        part = Partition.from_labels(labels)
        regions = regionprops(labels, intensity_image=photos[0].movedim(0, -1).numpy())
        for reduce in ("mean", "max"):
            expected = np.stack([getattr(region, f"intensity_{reduce}") for region in regions])
            np.testing.assert_allclose(part.pool(photos[:1], reduce).numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(pool(photos[:1].float(), part).numpy(),
                                   np.stack([region.intensity_mean for region in regions]), rtol=1e-6)

    def test_as_spit_pool_at_full_resolution(self, photos: Tensor, part: Partition) -> None:
        values = photos.float() / 255
        for reduce in ("mean", "max"):
            assert torch.equal(part.pool(values, reduce), pool(values, part, reduce))

    @pytest.mark.parametrize("reduce", ["mean", "max"])
    def test_painted_values_come_back(self, part: Partition, mixed: Partition, reduce: str) -> None:
        for one in (part, mixed):
            values = draw(int(one.offsets[-1]))
            assert torch.equal(one.pool(one.paint(values), reduce), values)
            painted = one.paint(torch.stack([values, -values], 1))
            painted = painted.movedim(-1, 1) if one is part else [image.movedim(-1, 0) for image in painted]
            assert torch.equal(one.pool(painted, reduce), torch.stack([values, -values], 1))
        classes = torch.arange(9) % 4
        assert torch.equal(mixed.pool(mixed.paint(classes), "majority"), classes)

    def test_lists(self, mixed: Partition) -> None:
        maps = [draw(3, *labels.shape) for labels in mixed.labels]
        for reduce in ("mean", "sum", "max"):
            rows = mixed.pool(maps, reduce)
            assert torch.equal(rows, torch.cat([mixed[b].pool(one[None], reduce) for b, one in enumerate(maps)]))
            assert torch.equal(rows[:, 1], mixed.pool([one[1] for one in maps], reduce))
            assert torch.equal(rows, mixed.pool(tuple(maps), reduce))

    @pytest.mark.usefixtures("torch_threads")
    @pytest.mark.parametrize("reduce", ["mean", "sum", "max"])
    def test_an_image_alone_and_in_a_batch(self, part: Partition, reduce: str) -> None:
        values = draw(4, 8, 48, 48)
        rows = part.pool(values, reduce).split(list(part.host_counts))
        for b, expected in enumerate(rows):
            assert torch.equal(part[b].pool(values[b : b + 1], reduce), expected)

    @pytest.mark.parametrize(("dtype", "mean", "total"), [
        (torch.uint8, torch.float32, torch.int64), (torch.int64, torch.float32, torch.int64),
        (torch.bool, torch.float32, torch.int64), (torch.bfloat16, torch.bfloat16, torch.bfloat16),
        (torch.float64, torch.float64, torch.float64)])
    def test_dtypes(self, mixed: Partition, dtype: torch.dtype, mean: torch.dtype, total: torch.dtype) -> None:
        maps = [torch.ones(labels.shape, dtype=dtype) for labels in mixed.labels]
        for reduce, expected in (("mean", mean), ("sum", total), ("max", dtype)):
            rows = mixed.pool(maps, reduce)
            assert rows.dtype == expected
            assert rows.tolist() == (mixed.sizes().tolist() if reduce == "sum" else [1] * 9)
        if not dtype.is_floating_point:
            assert mixed.pool(maps, "majority").dtype == dtype

    def test_sums_of_integers_are_exact(self) -> None:
        part = Partition.from_labels(torch.zeros(1, 2, dtype=torch.int64))
        values = torch.tensor([[[2**60 + 1, 1]]])
        assert part.pool(values, "sum").tolist() == [2**60 + 2]
        assert part.pool(values, "max").tolist() == [2**60 + 1]

    @pytest.mark.parametrize("reduce", ["mean", "sum", "max"])
    def test_gradcheck(self, reduce: str) -> None:
        part = Partition.from_labels(torch.stack([LEFT, RIGHT]))
        values = draw(2, 2, 2, 3, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(lambda values: part.pool(values, reduce), (values,))

    @pytest.mark.parametrize(("values", "reduce", "error", "message"), [
        (torch.zeros(3, 2, 3), "mean", ValueError,
         r"^expected values of 1 image, got 3; x\[None\] makes a batch of one \(C, H, W\) map$"),
        (torch.zeros(1, 2, 3, 2), "mean", ValueError, "^expected values at 2×3 pixels, channels first, got 3×2; "
                                                      "spit.pool takes maps of other sizes$"),
        (torch.zeros(2, 3), "mean", ValueError, r"shape \(B, C, H, W\) or \(B, H, W\), or a list .*, got \(2, 3\)$"),
        ([torch.zeros(3)], "mean", ValueError, r"got \(3,\)$"),
        (torch.zeros(1, 1, 2, 3, dtype=torch.int64), "majority", ValueError, r"shape \(B, H, W\), or a list of such"),
        (torch.zeros(1, 2, 3), "majority", TypeError, "^expected integer labels, got torch.float32$"),
        (torch.zeros(1, 2, 3, dtype=torch.complex64), "mean", TypeError, "^expected real values, got torch.complex64$"),
        (torch.zeros(1, 2, 3), "median", ValueError, "reduce to be one of mean, sum, max, majority, got 'median'"),
        (torch.zeros(1, 2, 3), "avg", ValueError, "got 'avg'"),
        (torch.zeros(1, 2, 3, device="meta"), "sum", ValueError, "values on cpu, where the partition is, got meta"),
    ])
    def test_what_are_no_values(self, values: object, reduce: str, error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=message):
            Partition.from_labels(LEFT).pool(values, reduce)

    @CUDA
    @pytest.mark.parametrize("reduce", ["mean", "sum", "max", "majority"])
    def test_on_a_gpu(self, photos: Tensor, part: Partition, reduce: str) -> None:
        on_gpu = part.to("cuda")
        values = photos[:, 0] if reduce == "majority" else photos
        assert torch.equal(on_gpu.pool(values.cuda(), reduce).cpu(), part.pool(values, reduce))  # integers
        if reduce != "majority":
            rows = on_gpu.pool(values.cuda() / 255, reduce)
            torch.testing.assert_close(rows.cpu(), part.pool(values / 255, reduce))
            for b, expected in enumerate(rows.split(list(part.host_counts))):
                assert torch.equal(on_gpu[b].pool(values[b : b + 1].cuda() / 255, reduce), expected)


class TestCellShares:
    @given(labels=LABELS, side=st.integers(1, 8))
    def test_as_loops_over_pixels_do(self, labels: Tensor, side: int) -> None:
        part = Partition.from_labels(labels)
        h, w = (-(-pixels // side) for pixels in labels.shape)
        expected = torch.zeros(int(part.counts), h, w)
        for y, x in np.ndindex(*labels.shape):
            expected[part.labels[0, y, x], y // side, x // side] += 1
        expected = expected.flatten(1) / part.sizes()[:, None]
        [shares] = cell_shares(part, side)
        assert torch.equal(shares, expected)
        torch.testing.assert_close(shares.sum(1), torch.ones(len(shares)))

    @pytest.mark.parametrize("size", [(32, 48), (33, 47), (5, 40)])
    def test_squares_are_the_identity(self, size: tuple[int, int]) -> None:
        part = PatchTokenizer(16)(torch.zeros(2, 3, *size))
        for shares in cell_shares(part, 16):
            assert torch.equal(shares, torch.eye(len(shares)))

    def test_each_image_has_its_own_grid(self, mixed: Partition) -> None:
        shares = cell_shares(mixed, 2)
        assert [tuple(one.shape) for one in shares] == [(3, 2), (2, 2), (2, 2), (2, 2)]
        for b, one in enumerate(shares):
            assert torch.equal(one, cell_shares(mixed[b], 2)[0])

    def test_the_mean_of_a_map_is_the_product(self, part: Partition) -> None:
        features = draw(4, 6, 12, 12)
        rows = torch.cat([shares @ one.flatten(1).T
                          for shares, one in zip(cell_shares(part, 4), features, strict=True)])
        torch.testing.assert_close(rows, pool(features, part))
