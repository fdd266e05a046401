"""Token merging inside f."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spit
from spit.backbone.merging import MergingTransformer, merge
from spit.model import SpitModel


def small(share: float | None, **more: object) -> SpitModel:
    torch.manual_seed(0)
    parts = {} if share is None else {"backbone": "merging", "backbone_options": {"share": share, **more}}
    return spit.create_model("spit_tiny_16", depth=4, num_classes=7, **parts).eval()


@pytest.fixture
def images(photo: Callable[[str, int], Tensor]) -> Tensor:
    return torch.stack([photo(name, 96) for name in ("cat", "coffee", "astronaut")])


def rows_of(model: SpitModel, images: Tensor) -> list[int]:
    """The rows that enter attention and MLP of each block."""
    rows: list[int] = []
    for block in model.backbone.blocks:
        for branch in (block.attention.qkv, block.mlp):
            branch.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    model(images)
    return rows


@torch.no_grad()
def test_a_share_of_one_is_the_plain_transformer(images: Tensor) -> None:
    plain, merging = small(None), small(1.0)
    assert plain.state_dict().keys() == merging.state_dict().keys()
    expected, got = (model(images, record=("features",)) for model in (plain, merging))
    torch.testing.assert_close(got.logits, expected.logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(got.tokens.values, expected.tokens.values, rtol=1e-4, atol=1e-4)
    for layer in range(4):
        torch.testing.assert_close(got.features[layer].values, expected.features[layer].values, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_an_image_has_the_same_answer_in_every_batch(images: Tensor) -> None:
    model = small(0.5)
    together = model(images)
    alone = torch.cat([model(image[None]) for image in images])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)
    assert (together - small(None)(images)).abs().max() > 1e-3


@torch.no_grad()
def test_padding_changes_nothing(images: Tensor) -> None:
    model = small(0.6)
    rows = model.embedder(model.tokenize(images)[1]).split()
    assert len({len(each) for each in rows}) == 3
    backbone = model.backbone
    assert isinstance(backbone, MergingTransformer)
    together, alone = backbone._run(rows, [1]), [backbone._run([each], [1]) for each in rows]
    assert together.keys() == {1, 3}
    for layer, got in together.items():
        torch.testing.assert_close(got, torch.cat([one[layer] for one in alone]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("share", [0.5, 0.75])
@torch.no_grad()
def test_the_mean_over_blocks_is_the_share(photo: Callable[[str, int], Tensor], share: float) -> None:
    model, image = small(share), photo("cat", 224)[None]
    count = int(model.tokenize(image)[0].counts)
    rows, counts = rows_of(model, image), model.backbone.counts(count)
    assert (sum([count, *counts[:-1]]) + sum(counts)) / 8 == pytest.approx(share * count, abs=0.05 * count)
    assert all(0 <= got - left - 1 < 16 for got, left in zip(rows[1::2], counts, strict=True))  # rounded up to 16


def test_the_most_alike_pairs_join() -> None:
    keys = torch.tensor([[[9.0, 9.0], [1.0, 0.0], [0.0, 1.0], [0.1, 1.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.3]]])
    values = torch.arange(7.0)[None, :, None]
    # Rows 2, 4 and 6 look for the most alike of 1, 3 and 5: 2 finds 3, 4 finds 1, 6 finds 5.
    joined, sizes, moved = merge(values, torch.ones(1, 7), keys, torch.tensor([2]), 5)
    assert moved.tolist() == [[0, 1, 2, 2, 1, 3, 4]]
    assert sizes.tolist() == [[1, 2, 2, 1, 1]]
    assert joined[0, :, 0].tolist() == [0, 2.5, 2.5, 5, 6]
    again, sizes, _ = merge(joined, sizes, keys[:, :5], torch.tensor([2]), 3)
    assert sizes.sum() == 7
    torch.testing.assert_close((again[..., 0] * sizes).sum(), torch.tensor(21.0))


def test_padding_stays_behind() -> None:
    values, sizes, moved = merge(torch.ones(2, 5, 2), torch.tensor([[1.0, 1, 1, 0, 0], [1, 1, 1, 1, 1]]),
                                 torch.ones(2, 5, 2), torch.tensor([1, 0]), 6)
    assert sizes.tolist() == [[1, 2, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0]]
    assert moved.tolist()[0][:3] == [0, 1, 1]
    assert values.isfinite().all()


@pytest.mark.parametrize(("tokens", "share", "expected"), [
    (240, 0.5, [180, 120, 60, 30]), (240, 0.75, [210, 180, 150, 120]), (240, 1, [240] * 4), (1, 0.5, [1] * 4),
    (3, 0.5, [2, 1, 1, 1]), (0, 0.5, [0] * 4)])
def test_as_many_leave_in_each_block_but_no_more_than_half(tokens: int, share: float, expected: list[int]) -> None:
    assert small(share).backbone.counts(tokens) == expected


def test_blocks_that_merge_can_be_chosen(images: Tensor) -> None:
    plain, merging = small(None), small(0.8125, at=[2])
    assert merging.backbone.counts(240) == [240, 240, 120, 120]
    assert small(0.75, at=[1, 3]).backbone.counts(240) == [240, 160, 160, 80]
    with torch.no_grad():
        expected, got = (model(images, record=("features",)) for model in (plain, merging))
    for layer in (0, 1):  # before tokens join
        assert torch.equal(got.features[layer].values, expected.features[layer].values)
    for layer in (2, 3):
        joined = [len(own.unique(dim=0)) for own in got.features[layer].split()]
        assert joined == [count - count // 2 + 1 for count in got.partition.counts.tolist()]


@pytest.mark.parametrize("at", [[], [4], [-1, 2], ["1"], [1.5]])
def test_blocks_that_are_not_there(at: list[Any]) -> None:
    with pytest.raises(ValueError, match="expected at to be blocks from 0 to 3, got "):
        small(0.8, at=at)


def test_training_mode_without_gradients(images: Tensor) -> None:
    model = spit.create_model("spit_tiny_16", depth=3, drop_path=0.5, drop_path_uniform=True, num_classes=7,
                              backbone="merging", backbone_options={"at": [2], "share": 0.95}, training=True)
    with torch.no_grad():
        assert model(images).isfinite().all()


def test_a_share_that_the_blocks_cannot_reach() -> None:
    with pytest.raises(ValueError, match=r"at least 0\.8125 with at=\[2\], since at most half .* got 0\.7"):
        small(0.7, at=[2])


def test_models_that_merge_are_saved_and_loaded(images: Tensor, tmp_path: Path) -> None:
    model = small(0.7)
    spit.save_model(model, tmp_path / "model")
    loaded = spit.load_model(tmp_path / "model").eval()
    with torch.no_grad():
        assert torch.equal(loaded(images), model(images))


def test_masks_and_classes_of_a_published_model(images: Tensor) -> None:
    model = spit.create_model("spit_tiny_16.elastic_retrofit", pretrained=True, backbone="merging").eval()
    assert model.backbone.share == 0.5
    with torch.no_grad():
        answer = model(images, record=())
    assert answer.partition.paint(answer.tokens.values).shape == (3, 96, 96, 192)


def test_a_predictor_classifies_and_segments_and_says_what_it_cannot(images: Tensor) -> None:
    seen = spit.Predictor(small(0.5))(images[0], crop=False)
    assert seen.logits.shape == (1, 7)
    assert seen.segment().mask[0].shape == (96, 96)
    with pytest.raises(ValueError, match="backbone 'merging' does not report its attention"):
        seen.explain("flow")


def test_attention_is_refused(images: Tensor) -> None:
    with pytest.raises(ValueError, match=r'merged tokens have no attention .*with_backbone\("transformer"\)'):
        small(0.5)(images, record=("attention",))


def test_shares_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"expected share to be from 0\.5 to 1, got 0\.3"):
        small(0.3)
    with pytest.raises(ValueError, match=r"expected share to be from 0\.5 to 1, got 'half'"):
        small("half")  # type: ignore[arg-type]
