import pytest

from spit.backbone import Recorder


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
    (("gradients",), "among"),
])
def test_what_is_not_there_is_named(record, message):
    with pytest.raises(ValueError, match=message):
        Recorder.of(record, depth=3)


@pytest.mark.parametrize("record", ["attention", 3, {"attention": -1}, {"attention": ("last",)}])
def test_wrong_types_say_how_to_write_it(record):
    with pytest.raises(TypeError, match=r"-1,?\)"):
        Recorder.of(record, depth=3)
