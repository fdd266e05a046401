"""h, the prediction head: class token to logits (§2.1)."""

from torch import Tensor, nn


class ClassHead(nn.Module):
    """A linear layer on the class token; the final norm belongs to f.

    Args:
        width: D.
        num_classes: number of logits; 0 returns the class token.

    Shape:
        class_token ``(B, D)`` to ``(B, num_classes)``, or ``(B, D)`` if num_classes is 0.
    """

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, num_classes) if num_classes else None
        if self.linear is not None:
            nn.init.trunc_normal_(self.linear.weight, std=0.02)
            nn.init.zeros_(self.linear.bias)

    def forward(self, class_token: Tensor) -> Tensor:
        return class_token if self.linear is None else self.linear(class_token)
