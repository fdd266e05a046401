import pytest
import torch

from spit.attribution.targets import class_index, read_target
from spit.predictor import Predictor

NAMES = ("tabby", "Egyptian cat", "crane", "lynx cat", "crane")


@pytest.fixture
def prediction(small, images):
    found = Predictor(small())(images)
    found.predictor.class_names = NAMES
    return found


def test_one_for_all_or_one_for_each_by_index_or_name(prediction):
    assert read_target(prediction, 2).tolist() == [2, 2, 2]
    assert read_target(prediction, torch.tensor([4, 0, 1], dtype=torch.int32)).tolist() == [4, 0, 1]
    assert read_target(prediction, "Tabby").tolist() == [0, 0, 0]
    assert read_target(prediction, ["egyptian cat", 2, "3"]).tolist() == [1, 2, 3]


def test_the_predicted_class_is_the_default(prediction):
    assert torch.equal(read_target(prediction, None), prediction.logits.argmax(1))


@pytest.mark.parametrize("target", [1.5, True, [0, 1.5, 2], {"a": 1}])
def test_what_is_no_class(prediction, target):
    with pytest.raises(TypeError, match="a target class as an integer or a name"):
        read_target(prediction, target)


@pytest.mark.parametrize(("target", "message"), [
    ([0, 1], r"each of 3 images, got shape \(2,\)"), (5, "from 0 to 4, got 5"), (-1, "from 0 to 4, got -1")])
def test_classes_that_are_not_there(prediction, target, message):
    with pytest.raises(ValueError, match=message):
        read_target(prediction, target)


@pytest.mark.parametrize(("name", "message"), [
    ("cat", "did you mean 'egyptian cat' or 'lynx cat'"), ("taby", "did you mean 'tabby'"),
    ("crane", "classes 2 and 4"), ("5", "from 0 to 4 or its name, got '5'"), ("qqq", "got 'qqq'$")])
def test_names_that_are_none_or_several(name, message):
    with pytest.raises(ValueError, match=message):
        class_index(NAMES, name)
