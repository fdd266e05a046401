from pathlib import Path

import pytest
import torch
from torch import Tensor

from spit.data.photos import Centres, Photos
from spit.training.distributed import Team
from spit.training.validate import Validation, score

CPU = torch.device("cpu")


def test_scores_by_hand() -> None:
    logits = torch.tensor([[3.0, 2, 1, 0, -1, -2], [3, 2, 1, 0, -1, -2], [-5, 4, 3, 2, 1, 9], [1, 0, 0, 0, 0, 0]])
    first, five, loss, count = score(logits, torch.tensor([0, 4, 1, -1])).tolist()
    assert (first, five, count) == (1, 3, 3)
    assert loss == pytest.approx(float(-logits.log_softmax(1)[[0, 1, 2], [0, 4, 1]].sum()))
    assert score(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))[1] == 1  # fewer than five classes


@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize("size", [1, 3, 23])
def test_each_photo_is_counted_once(photos: Path, size: int, resident: bool) -> None:
    listed = Photos([photos], 8, labelled=True)
    seen: list[Tensor] = []

    def predict(images: Tensor) -> Tensor:
        seen.extend(images)
        return torch.tensor([[1.0, 0.0]]).expand(len(images), 2)

    counts = right = 0.0
    for rank in range(size):
        # Each process alone: the sum over them is what the test makes.
        validation = Validation(listed, Team(rank, size, CPU), 4, resident=resident)
        figures = validation(predict)
        some = min(figures["images"], len(listed))
        counts += some if rank < len(listed) else 0
        right += figures["top1"] * some
    assert counts == len(seen) == 20
    assert right == 10
    expected = sorted(Centres(listed)[index][0].sum().item() for index in range(20))
    assert sorted(image.sum().item() for image in seen) == expected


def test_one_that_cannot_be_read_does_not_count(photos: Path, tmp_path: Path,
                                                caplog: pytest.LogCaptureFixture) -> None:
    import shutil

    shutil.copytree(photos, tmp_path / "copy")
    (tmp_path / "copy/fine/0.png").write_bytes(b"")
    validation = Validation(Photos([tmp_path / "copy"], 8, labelled=True), Team(0, 1, CPU))
    figures = validation(lambda images: torch.tensor([[1.0, 0.0]]).expand(len(images), 2))
    assert (figures["images"], figures["top1"]) == (19, pytest.approx(10 / 19))
