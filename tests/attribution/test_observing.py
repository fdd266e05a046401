"""What attribution adds to the backbone: a layer's heads, seen as the tokens pass."""

import pytest
import torch

from spit.backbone import Recorder, attention_maps, ragged_attention


def test_the_observer_sees_every_layer_once_and_changes_nothing(small, images):
    model, seen = small(depth=3), []
    recorder = Recorder({}, observe=lambda layer, spans, heads: seen.append((layer, spans, heads)))
    with torch.no_grad():
        output = model(images, record=recorder)
        assert torch.equal(output.logits, model(images))
        recorded = model(images, record=("attention",)).attention
    assert [layer for layer, _, _ in seen] == [0, 1, 2]
    for layer, spans, heads in seen:
        assert torch.equal(heads.answer, ragged_attention(heads.query, heads.key, heads.value, spans))
        for got, expected in zip(attention_maps(heads.query, heads.key, spans), recorded[layer], strict=True):
            torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_training_with_checkpoints_observes_once(small, images, checkpointing):
    model, seen = small(depth=3).train(), []
    model.backbone.checkpointing = checkpointing
    output = model(images, record=Recorder({}, observe=lambda layer, spans, heads: seen.append(layer)))
    output.logits.sum().backward()
    assert seen == [0, 1, 2]


def test_an_observer_is_something_asked_for():
    assert not Recorder({})
    assert Recorder({}, observe=lambda *_: None)
    recorder = Recorder.of(("features",), 2)
    assert Recorder.of(recorder, 2) is recorder
    assert recorder.observer(0, None) is None
