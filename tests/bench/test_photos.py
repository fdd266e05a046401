import torch

from spit.bench.photos import photo_batch, sample_photos


def test_a_batch_is_seeded_and_varied() -> None:
    paths = sample_photos()
    batch = photo_batch(paths, 7, 20, 30, seed=1)
    assert batch.shape == (7, 3, 20, 30)
    assert batch.dtype == torch.uint8
    assert torch.equal(batch, photo_batch(paths, 7, 20, 30, seed=1))
    assert not torch.equal(batch, photo_batch(paths, 7, 20, 30, seed=2))
    assert len({image.numpy().tobytes() for image in batch}) == 7
