import importlib.util

import numpy as np
import pytest

from spit.errors import MissingExtra
from spit.evaluation.superpixels import METHODS, choose_methods, count_regions


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    from skimage import data

    return np.ascontiguousarray(data.coffee()[40:168, 100:292])


@pytest.mark.parametrize("name", METHODS)
def test_every_method_labels_every_pixel_and_follows_its_parameter(name: str, image: np.ndarray) -> None:
    method, given = METHODS[name], image.copy()
    guess = method.near(method.guess(96, image.shape[0] * image.shape[1]))
    some = method.segment(image, guess)
    assert some.shape == image.shape[:2]
    assert some.dtype.kind in "iu"
    assert np.array_equal(image, given)
    more = method.segment(image, method.moved(guess, 2))
    assert 10 < count_regions(some) < count_regions(more)


@pytest.mark.parametrize("name", METHODS)
def test_a_move_is_a_move_in_its_direction(name: str) -> None:
    method = METHODS[name]
    for change in (-0.3, -0.001, 0.001, 0.3):
        moved = method.moved(20, change)
        assert (moved - 20) * method.slope * change > 0
        assert moved == method.near(moved)


def test_all_methods_unless_named() -> None:
    assert [method.name for method in choose_methods([])] == list(METHODS)
    assert [method.name for method in choose_methods(["slic", "spit", "slic"])] == ["slic", "spit"]


def test_an_unknown_name_has_a_neighbour() -> None:
    with pytest.raises(ValueError, match="got 'quickshit'; did you mean 'quickshift'"):
        choose_methods(["quickshit"])


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("spit.evaluation.superpixels.methods.find_spec",
                        lambda name: find(name) if name != "cv2" else None)
    with pytest.raises(MissingExtra, match=r"SEEDS \(OpenCV\) needs opencv.*\[bench\]"):
        choose_methods(["spit", "seeds"])
    assert choose_methods(["spit", "slic"])
