import pytest
import torch

from spit.backbone import Recorder, Transformer, TransformerOptions, attention_maps, ragged_attention
from spit.tokens import Tokens


@pytest.fixture
def backbone():
    torch.manual_seed(0)
    return Transformer(TransformerOptions(width=24, depth=3, heads=3, layer_scale=None)).eval()


@pytest.fixture
def tokens():
    return Tokens(torch.randn(12, 24, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 5, 12]))


def test_names_mean_every_layer():
    recorder = Recorder.of(("attention",), depth=3)
    assert [recorder.wants("attention", layer) for layer in range(3)] == [True] * 3
    assert not recorder.wants("features", 0)


def test_mapping_means_its_layers_counted_from_either_end():
    recorder = Recorder.of({"attention": (-1, 0), "features": [1]}, depth=3)
    assert set(recorder.layers["attention"]) == {0, 2}
    assert set(recorder.layers["features"]) == {1}


@pytest.mark.parametrize(("record", "message"), [
    (("atention",), "did you mean 'attention'"),
    ({"attention": (3,)}, "from -3 to 2, got 3"),
    ({"features": (-4,)}, "from -3 to 2, got -4"),
    (("gradients",), "one of attention, features"),
])
def test_what_is_not_there_is_named(record, message):
    with pytest.raises(ValueError, match=message):
        Recorder.of(record, depth=3)


@pytest.mark.parametrize("record", ["attention", 3, {"attention": -1}, {"attention": ("last",)}])
def test_wrong_types_say_how_to_write_it(record):
    with pytest.raises(TypeError, match=r"-1,?\)"):
        Recorder.of(record, depth=3)


def test_the_observer_sees_every_layer_once_and_changes_nothing(backbone, tokens):
    seen = []
    recorder, recorded = Recorder({}, observe=lambda *heads: seen.append(heads)), Recorder.of(("attention",), 3)
    with torch.no_grad():
        plain, output = backbone(tokens), backbone(tokens, recorder)
        backbone(tokens, recorded)
    assert torch.equal(output.values, plain.values)
    assert [layer for layer, _, _ in seen] == [0, 1, 2]
    for layer, spans, heads in seen:
        assert torch.equal(heads.answer, ragged_attention(heads.query, heads.key, heads.value, spans))
        for got, expected in zip(attention_maps(heads.query, heads.key, spans), recorded.attention[layer], strict=True):
            torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_training_with_checkpoints_observes_once(backbone, tokens, checkpointing):
    seen = []
    backbone.train().checkpointing = checkpointing
    recorder = Recorder({}, observe=lambda layer, spans, heads: seen.append(layer))
    backbone(tokens, recorder).values.sum().backward()
    assert seen == [0, 1, 2]


def test_an_observer_is_something_asked_for():
    assert not Recorder({})
    assert Recorder({}, observe=lambda *_: None)
    recorder = Recorder.of(("features",), 2)
    assert Recorder.of(recorder, 2) is recorder
    assert recorder.observer(0, None) is None
