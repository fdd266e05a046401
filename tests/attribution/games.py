"""Games of which the values of tokens are known, in place of a model."""

from collections.abc import Callable

import torch
from torch import Tensor


class Game:
    """What :class:`spit.attribution.removal.Subsets` is to a method: a number for each subset."""

    def __init__(self, worth: Callable[[Tensor], Tensor]) -> None:
        self.worth, self.asked = worth, 0

    def __call__(self, present: Tensor) -> Tensor:
        self.asked += len(present)
        return self.worth(present.double())


def grid(side: int) -> Tensor:
    """Centres of side × side square tokens."""
    return torch.cartesian_prod(*2 * [torch.arange(side, dtype=torch.float64)])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
