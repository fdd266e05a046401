"""The options of segmentation and correspondence."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from spit.options import Options, documented, option

TEMPERATURE = 0.01

@documented
@dataclass(frozen=True)
class TokenCut(Options):
    """How the tokens of an image are cut in two: all options of :func:`spit.correspond`, and some of :class:`Cut`."""

    tau: float | None = option(
        None, "Cosine τ above which two tokens are joined; 1/3 in App. E, 0.2 in TokenCut's code (default: the image's "
              "own)", least=-1, most=1)
    cut_on: Literal["tokens", "keys"] = option(
        "tokens", "What the cut compares: the tokens that leave a layer, through the final norm, or the keys of its "
                  "attention")
    layer: int = option(-1, "Layer to cut, from 0, or from the end with -1 the last")
    foreground: Literal["border", "class_token", "largest"] = option(
        "border", "Side of the cut that is the foreground: border, the one with less of the image's border; "
                  "class_token, the one whose own class token is nearer to the whole image's (App. E); largest, the "
                  "one with the entry of the largest magnitude (TokenCut)")

    def layer_of(self, depth: int) -> int:
        """The layer counted from 0; ValueError if there is no such layer."""
        if not -depth <= self.layer < depth:
            raise ValueError(f"expected a layer from {-depth} to {depth - 1}, got {self.layer}")
        return self.layer % depth


@documented
@dataclass(frozen=True)
class Cut(TokenCut):
    """The options of :func:`spit.segment`.

    Example:
        >>> from spit.segmentation import Cut
        >>> Cut(tau=1 / 3, foreground="class_token").layer  # as App. E
        -1
    """

    method: str | None = option(
        None, "What finds the foreground: head, a linear layer on tokens of several layers, trained without masks; "
              "cut, TokenCut; or both, their mean (default: both, or cut if the model has no head)",
        choices=("head", "cut", "both"))
    token_head: str | Path | None = option(
        None, "File of the head, from spit train-head (default: the one that comes with spit for the model's weights)",
        metavar="FILE")
    clean: bool = option(
        True, "Remove crumbs and holes by an energy on the graph of regions, solved exactly, and decide finer regions "
              "along the boundary; a mask of a reduced image then follows superpixels of the original")
