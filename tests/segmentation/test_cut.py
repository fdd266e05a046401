import pytest

from spit.segmentation import Cut


def test_the_defaults() -> None:
    """Of the paper, but for τ and the foreground: docs/segmentation.md has what was measured."""
    assert Cut() == Cut(tau=None, cut_on="tokens", layer=-1, foreground="border", scales=1)
    assert Cut(layer=-2).layer_of(12) == 10


@pytest.mark.parametrize(("options", "told"), [
    ({"tau": 1.5}, "tau of at most 1, got 1.5"),
    ({"tau": -1.5}, "tau of at least -1, got -1.5"),
    ({"cut_on": "key"}, "did you mean 'keys'"),
    ({"foreground": "larger"}, "did you mean 'largest'"),
    ({"scales": 0}, "scales of at least 1, got 0"),
])
def test_values_out_of_range(options: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Cut(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"tau": "0.2"}, {"tau": True}, {"layer": None}, {"layer": 1.0}, {"scales": None}])
def test_wrong_types(options: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="expected"):
        Cut(**options)  # type: ignore[arg-type]


def test_a_layer_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="from -3 to 2, got 3"):
        Cut(layer=3).layer_of(3)
