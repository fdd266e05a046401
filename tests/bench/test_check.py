from pathlib import Path

import pytest
import torch
from PIL import Image

from spit import kernels
from spit.bench import check_labels
from spit.bench.photos import photo_batch, sample_photos
from spit.kernels import reference


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    sizes = [(24, 32), (24, 32), (16, 16)]
    for index, (height, width) in enumerate(sizes):
        image = photo_batch(sample_photos(), 1, height, width, seed=index)[0]
        Image.fromarray(image.movedim(0, -1).numpy()).save(tmp_path / f"{index}.png")
    return sorted(tmp_path.iterdir())


def test_all_images_are_compared_in_all_batches(paths: list[Path]) -> None:
    checks = list(check_labels(paths, torch.device("cpu")))
    assert [check.batch for check in checks] == [1, 7, 64] * 4
    assert {check.tokenizer for check in checks} == {
        "superpixel", "superpixel, compactness=0.1, max_tokens=196", "voronoi",
        "superpixel, levels=3, max_tokens=600, refine=3, features=saturated, similarity=variance, self_loop=none"}
    assert all(check.same == check.images == 3 for check in checks)


def test_a_difference_is_counted(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    exact = reference.nearest_sites

    def wrong(*args: object) -> torch.Tensor:
        labels = exact(*args)  # type: ignore[arg-type]
        labels[0, 0, 0] += 1
        return labels

    monkeypatch.setattr(kernels.reference, "nearest_sites", wrong)
    voronoi = [check for check in check_labels(paths, torch.device("cpu")) if check.tokenizer == "voronoi"]
    assert [check.same for check in voronoi] == [0, 1, 1]
