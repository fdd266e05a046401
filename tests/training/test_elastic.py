"""Training with other tokens than the model's own."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from spit.config import ModelConfig
from spit.model import SpitModel
from spit.partition import Partition
from spit.registry import load_model
from spit.training import TrainingError
from spit.training.batches import Batch
from spit.training.distributed import Team
from spit.training.elastic import Elastic, ElasticConfig
from spit.training.recipe import Recipe
from spit.training.task import Classification
from spit.training.train import train
from training.test_distill import batch_of

ALL = ElasticConfig(parts=4, own=2, max_tokens=(9, 5), merge_threshold=(0.3,), keep=(7,), spread=(6,),
                    patch=(8,), voronoi=(6,))


@pytest.fixture
def images(photo: Callable[[str, int], Tensor]) -> Tensor:
    return torch.stack([photo(name, 32) for name in ("coffee", "astronaut", "cat", "coffee", "cat", "astronaut",
                                                     "coffee", "cat", "astronaut")])


def small(**options: object) -> SpitModel:
    torch.manual_seed(0)
    config = ModelConfig(tokenizer_options={"levels": 2}, resolution=4, width=24, depth=1, heads=2, num_classes=5)
    return SpitModel(config.replace(**options)).train()


@pytest.mark.parametrize("seed", range(5))
def test_the_first_parts_have_the_models_own_tokens(images: Tensor, seed: int) -> None:
    model = small(token_budget=None)
    own, wanted = model.tokenizer, model.tokenizer(images)
    elastic = Elastic(model, ALL)
    torch.manual_seed(seed)
    with elastic.drawn(len(images)):
        answer = model(images, record=())
    assert (model.tokenizer, model.budgets) == (own, None)
    assert len(answer.partition.blocks) == 1  # of one size, in the order of the images
    assert answer.partition.counts.tolist()[:4] == wanted.counts.tolist()[:4]
    assert torch.equal(answer.partition.blocks[0][:4], wanted.blocks[0][:4])
    for index, first, last in ((2, 4, 6), (3, 6, 9)):
        counts = [int(count) for count in answer.tokens.counts[first:last]]
        parts = [setting.tokenizer(images[first:last]) for setting in elastic.settings]
        keeps = [setting.keep.tokens if setting.keep else 99 for setting in elastic.settings]
        assert counts in [part.counts.clamp(max=keep).tolist()
                          for part, keep in zip(parts, keeps, strict=True)], f"part {index}"


def test_each_setting_is_drawn_and_by_the_seed_alone(images: Tensor) -> None:
    model = small()
    elastic = Elastic(model, ALL)

    def draws(seed: int) -> list[Partition]:
        torch.manual_seed(seed)
        with elastic.drawn(len(images)):
            return [model.tokenizer(images)]

    assert len(elastic.settings) == 7
    assert torch.equal(draws(1)[0].blocks[0], draws(1)[0].blocks[0])
    assert len({tuple(draws(seed)[0].counts.tolist()) for seed in range(20)}) > 5


@pytest.mark.parametrize("way", ["keep", "spread"])
def test_drops_are_within_the_budget(images: Tensor, way: str) -> None:
    model = small(token_budget=10)
    with Elastic(model, ElasticConfig(parts=3, own=1, **{way: (4,)})).drawn(len(images)):
        answer = model(images, record=())
    assert answer.tokens.counts.tolist() == [10] * 3 + [4] * 6
    assert model.budgets is None


def test_without_settings_nothing_changes(images: Tensor) -> None:
    model = small()
    own = model.tokenizer
    state = torch.get_rng_state()
    with Elastic(model, ElasticConfig()).drawn(len(images)):
        assert model.tokenizer is own
    assert torch.equal(torch.get_rng_state(), state)


def test_an_error_leaves_the_model_as_it_was(images: Tensor) -> None:
    model = small()
    own = model.tokenizer
    with pytest.raises(RuntimeError, match="stopped"), Elastic(model, ALL).drawn(len(images)):
        raise RuntimeError("stopped")
    assert model.tokenizer is own


def test_a_task_trains_with_them(images: Tensor) -> None:
    batch: Batch = batch_of(images)
    losses = []
    for elastic in (None, ALL):
        model = small()
        torch.manual_seed(1)
        task = Classification(model, elastic=elastic)
        loss, _ = task.loss(model, Batch(batch.images, batch.aspects, torch.zeros(len(images), dtype=torch.int64),
                                         batch.draw))
        loss.backward()
        losses.append(loss.item())
        assert model.embedder.projection.weight.grad is not None
    assert losses[0] != losses[1]


def test_what_cannot_be_trained() -> None:
    with pytest.raises(ValueError, match="expected own to be at most parts=2, got 3"):
        ElasticConfig(parts=2, own=3)
    model = small().with_tokenizer("patch", size=8)
    with pytest.raises(TrainingError, match=r"superpixel tokens for elastic\.max_tokens, got patch tokens"):
        Elastic(model, ElasticConfig(max_tokens=(4,)))
    assert Elastic(model, ElasticConfig(voronoi=(4,)))


def test_a_run_saves_the_models_own_tokenizer(recipe_file: Path, tmp_path: Path) -> None:
    changes = ["elastic.parts=4", "elastic.own=2", "elastic.max_tokens=[8, 4]", "elastic.keep=[5]",
               "optimization.epochs=1"]
    train(Recipe.read(recipe_file, changes), tmp_path / "run", Team(0, 1, torch.device("cpu")))
    model = load_model(tmp_path / "run" / "model")
    assert model.config.tokenizer_options.get("max_tokens") is None
    assert "max_tokens = " not in (tmp_path / "run" / "model" / "config.json").read_text()
