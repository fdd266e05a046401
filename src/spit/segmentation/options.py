"""The options of segmentation and correspondence."""

from dataclasses import dataclass
from typing import Literal

from spit.options import Options, documented, option

TEMPERATURE = 0.01

@documented
@dataclass(frozen=True)
class TokenCut(Options):
    """How the tokens of an image are cut in two: options of :func:`spit.correspond` and :func:`spit.segment`."""

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
