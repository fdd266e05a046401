import pytest
import torch

from spit.attribution.targets import choose_classes, read_target


def test_one_for_all_or_one_for_each(small):
    model = small()
    assert read_target(model, 3, None) is None
    assert read_target(model, 3, 2).tolist() == [2, 2, 2]
    assert read_target(model, 2, torch.tensor([4, 0], dtype=torch.int32)).tolist() == [4, 0]


def test_the_predicted_class_stands_in():
    logits = torch.tensor([[0.0, 2.0], [3.0, 1.0]])
    assert choose_classes(logits, None).tolist() == [1, 0]
    assert choose_classes(logits, torch.tensor([0, 0])).tolist() == [0, 0]


@pytest.mark.parametrize("target", ["tabby", ["tabby", "lynx"], 1.5, True])
def test_names_are_no_numbers(small, target):
    with pytest.raises(TypeError, match=r"target class as an integer.*imagenet_classes\(\).index\(name\)"):
        read_target(small(), 2, target)
