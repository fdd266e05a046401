import pytest

from spit.segmentation import Cut


def test_the_defaults() -> None:
    """Of the paper, but for τ and the foreground: docs/segmentation.md has what was measured."""
    assert Cut() == Cut(tau=None, features="tokens", layer=-1, foreground="border", size=None, scales=1, refine=None)
    assert Cut(layer=-2).layer_of(12) == 10


@pytest.mark.parametrize(("options", "told"), [
    ({"tau": 1.5}, "from -1 to 1, got 1.5"),
    ({"features": "key"}, "did you mean 'keys'"),
    ({"foreground": "larger"}, "did you mean 'largest'"),
    ({"refine": "crf"}, "refine among guided"),
    ({"size": 0}, "at least 1 pixel"),
    ({"scales": 0}, "at least 1 of the scales"),
])
def test_values_out_of_range(options: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Cut(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"tau": "0.2"}, {"tau": True}, {"layer": None}, {"layer": 1.0}, {"size": 2.5},
                                     {"scales": None}])
def test_wrong_types(options: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="expected"):
        Cut(**options)  # type: ignore[arg-type]


def test_a_layer_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="from -3 to 2, got 3"):
        Cut(layer=3).layer_of(3)
