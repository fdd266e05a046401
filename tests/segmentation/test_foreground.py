"""Which side is the foreground, with a model whose class token is known."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from spit.partition import Partition
from spit.segmentation.foreground import orient
from spit.tokens import Tokens

LABELS = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]], dtype=torch.int32)


class Brightest:
    """Its class token is (brightest pixel, 1)."""

    def embed(self, images: list[Tensor]) -> Tensor:
        brightest = torch.stack([image.amax() for image in images])
        return torch.stack([brightest, torch.ones_like(brightest)], dim=1)


def seen(inside: float, outside: float) -> Any:
    """What ``orient`` reads of a ForwardPass."""
    image = torch.where(LABELS == 1, inside, outside).float().expand(3, -1, -1)
    tokens = Tokens(torch.zeros(2, 1), torch.tensor([0, 2]))
    whole = Brightest().embed([image])
    partition = Partition.of(LABELS[None], torch.tensor([2]))
    return SimpleNamespace(model=Brightest(), images=(image,), tokens=tokens, class_token=whole,
                           paint=lambda values: list(partition.paint(values)))


def test_the_largest_entry_stays_positive() -> None:
    values = torch.tensor([1.0, -1.0])
    assert orient(seen(1, 0), values, "largest") is values


def test_the_side_with_the_border_is_background() -> None:
    for values in (torch.tensor([1.0, -1.0]), torch.tensor([-1.0, 1.0])):
        assert orient(seen(1, 0), values, "border").tolist() == [-1, 1]


def test_class_tokens() -> None:
    """The brightest pixel survives on its own side alone; the other side's is at most the mean's."""
    for values in (torch.tensor([1.0, -1.0]), torch.tensor([-1.0, 1.0])):
        assert orient(seen(0.9, 0.1), values, "class_token").tolist() == [-1, 1]
        assert orient(seen(0.1, 0.9), values, "class_token").tolist() == [1, -1]


def test_a_side_that_is_empty_leaves_things_as_they_are() -> None:
    values = torch.zeros(2)
    assert orient(seen(1, 0), values, "class_token").tolist() == [0, 0]
