from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spit.data.photos import Photos
from spit.training.augment import AugmentConfig
from spit.training.batches import Batches, mix_seed
from spit.training.distributed import part


@pytest.fixture
def listed(photos: Path) -> Photos:
    return Photos([photos], 12, labelled=True)


def test_every_photo_once_an_epoch(listed: Photos) -> None:
    batches = Batches(listed, 6, seed=3)
    row = torch.cat([batches.indices(step) for step in range(10)])
    assert (batches.steps(3), batches.steps(0.01), batches.epoch(10)) == (10, 1, 3)
    orders = [row[start : start + 20].tolist() for start in (0, 20, 40)]
    assert all(sorted(order) == list(range(20)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    assert torch.equal(Batches(listed, 6, seed=3).indices(7), batches.indices(7))
    assert not torch.equal(Batches(listed, 6, seed=4).indices(7), batches.indices(7))


def test_a_batch_may_be_larger_than_the_folder(listed: Photos) -> None:
    assert torch.bincount(Batches(listed, 50, seed=0).indices(0), minlength=20).tolist().count(2) == 10


@pytest.mark.parametrize(("workers", "resident"), [(0, False), (1, False), (0, True)])
def test_the_same_pixels_by_every_way_from_any_step(listed: Photos, workers: int, resident: bool) -> None:
    batches = Batches(listed, 8, seed=1, workers=workers, resident=resident)
    loads = list(batches.loads(AugmentConfig(), 2, 5, slice(4, 8)))
    assert len(loads) == 3
    for step, load in enumerate(loads, 2):
        for row, index in enumerate(batches.indices(step)[4:8].tolist()):
            image, aspect, label = listed[index]
            assert torch.equal(load.images[row], image)
            assert load.aspects[row] == torch.tensor(aspect)
            assert load.labels[row] == label
    whole = list(Batches(listed, 8, seed=1).loads(AugmentConfig(), 4, 5, slice(0, 8)))
    assert torch.equal(whole[0].draw[4:8].area, loads[2].draw.area)
    assert not torch.equal(loads[0].draw.area, loads[1].draw.area)


def test_leaving_early_and_errors_inside(listed: Photos) -> None:
    loads = Batches(listed, 4, seed=0).loads(AugmentConfig(), 0, 1000, slice(0, 4))
    next(loads)
    loads.close()
    listed.bad[:] = True
    with pytest.raises(Exception, match="20 of 20 photos cannot be read"):
        next(Batches(listed, 4, seed=0).loads(AugmentConfig(), 0, 1, slice(0, 4)))


@given(st.integers(1, 40), st.integers(1, 7))
def test_parts_are_a_partition_between_pairs(pairs: int, count: int) -> None:
    pieces = [part(2 * pairs, index, count) for index in range(count)]
    assert [place for piece in pieces for place in range(piece.start, piece.stop)] == list(range(2 * pairs))
    sizes = [piece.stop - piece.start for piece in pieces]
    assert all(size % 2 == 0 for size in sizes)
    assert max(sizes) - min(sizes) <= 2


def test_seeds() -> None:
    assert mix_seed(1, 23) != mix_seed(12, 3)
    assert mix_seed(0, 5, "order") != mix_seed(0, 5, "augment")
    assert 0 <= mix_seed(-1) < 2**63
