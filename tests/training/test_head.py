from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import spit
from spit import Predictor
from spit.config import ModelConfig
from spit.model import SpitModel
from spit.segmentation import RegionGraph
from spit.training.head import GRID, HeadOptions, Look, agree, default_layers, fit_head, look, self_train, train_linear


@pytest.fixture(scope="module")
def model() -> SpitModel:
    torch.manual_seed(0)
    return SpitModel(ModelConfig(tokenizer_options={"levels": 2}, resolution=4, position_bins=4, gradients=False,
                                 width=16, depth=3, heads=2, layer_scale=None, num_classes=2)).eval()


def photos(count: int, seed: int = 0) -> list[Tensor]:
    """Bright squares at random places on a dark ground."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(count):
        image = torch.randint(20, 60, (3, 40, 48), generator=generator).to(torch.uint8)
        y, x = (int(torch.randint(6, 18, (1,), generator=generator)) for _ in range(2))
        image[:, y : y + 16, x : x + 16] += 160
        made.append(image)
    return made


def strip(scores: list[float], points: list[int], color: float = 0.0) -> tuple[Look, np.ndarray]:
    """A look at a strip with one region for each score."""
    labels = torch.arange(len(scores)).repeat_interleave(4).expand(4, -1)
    image = torch.linspace(0, color, len(scores)).repeat_interleave(4).expand(3, 4, -1)
    graph = RegionGraph.of(image, labels)
    return Look(torch.zeros(len(scores), 1), np.array(scores), graph, np.array(points)), np.array(scores)


def test_looks_of_one_photo_see_the_same_places(model: SpitModel) -> None:
    [photo] = photos(1)
    looks = look(Predictor(model), photo, (0, 2), views=2, size=40)
    assert len(looks) == 3
    assert [one.tokens.shape[1] for one in looks] == [32] * 3
    bright = []
    for one in looks:
        assert len(one.tokens) == len(one.cut) == len(one.graph.sizes)
        bright.append((one.graph.colors[:, 0] > 40)[one.points].reshape(GRID, GRID))
    for other in bright[1:]:  # the flip is undone
        assert (bright[0] == other).mean() > 0.9
        assert (bright[0] == other[:, ::-1]).mean() < (bright[0] == other).mean()


def test_looks_vote() -> None:
    sure, unsure = strip([3.0, -3.0], [0, 0, 1, 1], 1.0), strip([-1.0, -1.0, -1.0], [0, 0, 1, 1], 1.0)
    (first, second), share = agree([sure[0], unsure[0]], [sure[1], unsure[1]])
    np.testing.assert_allclose(first, [1.0, -2.0], atol=0.1)
    np.testing.assert_allclose(second, [1.0, -2.0, -1.0], atol=0.1)  # no point lies in the third
    assert share == 0.5


def test_a_linear_layer_learns_what_is_linear() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(4000, 6, generator=generator) * torch.tensor([1.0, 5, 0.2, 1, 1, 1]) + 3
    targets = (inputs[:, 1] - inputs[:, 3] > 0.5).float()
    flipped = torch.rand(4000, generator=generator) < 0.5
    wrong = torch.where(flipped, 1 - targets, targets)
    weights, bias = train_linear(inputs, wrong, (~flipped).float(), HeadOptions(steps=200, rate=0.05))
    assert ((inputs @ weights + bias > 0) == (targets > 0)).float().mean() > 0.95  # weight 0 teaches nothing


def test_training_agrees_with_the_photos(model: SpitModel) -> None:
    told: list[str] = []
    options = HeadOptions(layers=(0, 2), steps=60, rate=0.02, generations=2)
    head = fit_head(model, photos(6), options, size=40, progress=lambda doing, done, total: told.append(doing))
    assert head.weights.shape == (2, 16)
    assert list(dict.fromkeys(told)) == ["Looking at photos", "Targets of round 1", "Targets of round 2"]
    assert (head.about["photos"], head.about["generations"], head.about["weights"]) == (6, 2, Predictor(model).digest)
    again = fit_head(model, photos(6), options, size=40)
    assert torch.equal(head.weights, again.weights)
    [new] = photos(1, seed=9)
    [seen] = Predictor(model)(new, crop=False).passes
    scores, bright = head.scores(seen), seen.partition.paint(torch.zeros(len(seen.tokens.values)))
    assert bright.shape[1:] == (40, 48)
    colors = RegionGraph.of(new, seen.partition.blocks[0][0]).colors[:, 0]
    assert ((scores > 0).numpy() == (colors > 40)).mean() > 0.8


def test_paths_and_errors(model: SpitModel, tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    Image.fromarray(photos(1)[0].movedim(0, 2).numpy()).save(file)
    head = fit_head(model, [file], HeadOptions(steps=2, views=0, generations=1), size=40)
    assert head.layers == (0, 1, 2)
    with pytest.raises(ValueError, match="got none"):
        fit_head(model, [])
    with pytest.raises(ValueError, match="layers below 3, got 5"):
        fit_head(model, [file], HeadOptions(layers=(5,)))
    with pytest.raises(ValueError, match="generations"):
        HeadOptions(generations=0)
    with pytest.raises(spit.ImageError):
        fit_head(model, [tmp_path / "nowhere.png"])


def test_a_target_of_everything_teaches_nothing() -> None:
    one, _ = strip([1.0, 1.0], [0, 1])
    weights, bias = self_train([[one]], HeadOptions(steps=3, generations=1, decay=0))
    assert not weights.any()
    assert float(bias) == 0


def test_default_layers() -> None:
    assert default_layers(12) == (1, 3, 5, 7, 9, 11)
    assert default_layers(24) == (3, 7, 11, 15, 19, 23)
    assert default_layers(1) == (0,)
