"""ForwardPass: what it keeps is what the model records."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from spit.config import ModelConfig
from spit.forward_pass import ForwardPass
from spit.model import SpitModel
from spit.partition import Partition
from spit.tokens import Tokens


@pytest.fixture(scope="module")
def model() -> SpitModel:
    torch.manual_seed(0)
    return SpitModel(ModelConfig(tokenizer_options={"levels": 2}, resolution=4, position_bins=4, gradients=False,
                                 width=24, depth=3, heads=3, layer_scale=None, num_classes=5)).eval()


@pytest.fixture
def images(photo: Callable[[str, int], Tensor]) -> list[Tensor]:
    return [photo("coffee", 24), photo("chelsea", 24)[:, :16]]


def run(model: SpitModel, images: list[Tensor], keep: bool = True) -> ForwardPass:
    with torch.no_grad():
        return ForwardPass(model, images, *model.tokenize(images), keep)


@torch.no_grad()
@pytest.mark.parametrize("keep", [True, False])
def test_it_is_what_the_model_records(model: SpitModel, images: list[Tensor], keep: bool) -> None:
    seen = run(model, images, keep)
    output = model(images, record=("features",))
    assert torch.equal(seen.logits, output.logits)
    assert torch.equal(seen.class_token, output.class_token)
    assert torch.equal(seen.tokens.values, output.tokens.values)
    assert torch.equal(seen.layer_tokens(2).values, output.tokens.values)
    rows = output.features[0]
    first = rows.offsets[:-1].tolist()
    others = [row for row in range(len(rows.values)) if row not in first]
    torch.testing.assert_close(seen.layer_tokens(0).values, model.backbone.norm(rows.values)[others])
    block, width = model.backbone.blocks[1], model.config.width
    keys = block.attention.qkv(block.norm1(rows.values))[others, width : 2 * width]
    torch.testing.assert_close(seen.layer_keys(1).values, keys)
    for tokens in (seen.layer_tokens(0), seen.layer_keys(1)):
        assert torch.equal(tokens.offsets, seen.tokens.offsets)
        assert not tokens.values.requires_grad


@pytest.mark.parametrize("keep", [True, False])
def test_a_trace_is_kept_or_computed_again(model: SpitModel, images: list[Tensor], keep: bool) -> None:
    seen = run(model, images, keep)
    for gradients in (False, True):
        first, again = seen.trace(gradients), seen.trace(gradients)
        assert (first is again) == keep
        torch.testing.assert_close(first.logits, seen.logits, rtol=0, atol=1e-6 if gradients else 0)
        assert len(first.heads) == 3
        assert first.logits.requires_grad == gradients


def test_a_painted_row_leaves_the_class_token_out() -> None:
    labels = [torch.tensor([[0, 1], [1, 1]]), torch.tensor([[0, 0], [0, 0]]), torch.tensor([[1, 0, 2]])]
    seen = ForwardPass.__new__(ForwardPass)
    seen.model, seen.partition = SimpleNamespace(prefix=1), Partition.from_labels(labels)  # type: ignore[assignment]
    painted = seen.paint_rows(torch.tensor([[9.0, 1, 2, 0], [9, 3, 0, 0], [9, 4, 5, 6]]))
    assert [one.tolist() for one in painted] == [[[1, 2], [2, 2]], [[3, 3], [3, 3]], [[5, 4, 6]]]


def test_the_model_stays_as_it_is(model: SpitModel, images: list[Tensor]) -> None:
    seen = run(model, images)
    seen.trace(gradients=True).logits.sum().backward(inputs=[seen.trace(gradients=True).heads[0].answer])
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_backbone_that_reports_nothing(model: SpitModel, images: list[Tensor], monkeypatch: pytest.MonkeyPatch
                                         ) -> None:
    monkeypatch.setattr(model.backbone, "forward",
                        lambda tokens, recorder=None, first=False: Tokens(tokens.values, tokens.offsets))
    seen = run(model, images)
    assert torch.equal(seen.layer_tokens(2).values, seen.tokens.values)
    for call in (seen.trace, lambda: seen.trace(gradients=True), lambda: seen.layer_tokens(0),
                 lambda: seen.layer_keys(2)):
        with pytest.raises(ValueError, match=r"'transformer' does not report (its attention|the features)"):
            call()
