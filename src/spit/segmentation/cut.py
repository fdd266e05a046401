"""Cut: how tokens become a foreground, every option in one place."""

import difflib
from dataclasses import dataclass

FEATURES = ("tokens", "keys")
FOREGROUNDS = ("border", "class_token", "largest")
FILTERS = ("guided",)


@dataclass(frozen=True)
class Cut:
    """The options of :func:`spit.segment`.

    Attributes:
        tau: τ, the cosine above which two tokens are joined; 1/3 in App. E, 0.2 in TokenCut's own code. None is
            the image's own, see :func:`~spit.segmentation.normalized_cut.own_threshold`.
        features: "tokens" are what leaves a layer, through the final norm; "keys" what its attention compares.
        layer: whose, from 0, or from the end with −1 the last.
        foreground: which side of the cut it is. "border": the one that has less of the image's border;
            "class_token": the one whose class token, the other side replaced by the image's mean colour, is
            nearer to that of the whole image by cosine (App. E); "largest": the one with the entry of the
            largest magnitude (TokenCut).
        size: the shorter side that the model sees; the maps come back to the image's own pixels by the
            nearest one. None leaves the image as it is.
        scales: how many levels of the hierarchy are cut, the model's own and finer ones; their standardised vectors
            are averaged at the pixels.
        refine: "guided" smooths the soft map along the image's edges, see
            :func:`~spit.segmentation.guided.guided_filter`; None does nothing after the cut.
    """

    tau: float | None = None
    features: str = "tokens"
    layer: int = -1
    foreground: str = "border"
    size: int | None = None
    scales: int = 1
    refine: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.tau, bool) or not isinstance(self.tau, int | float | None):
            raise TypeError(f"expected tau as a number, or None for the image's own, got {self.tau!r}")
        if self.tau is not None and not -1 <= self.tau <= 1:
            raise ValueError(f"expected tau, a cosine, from -1 to 1, got {self.tau}")
        for name in ("layer", "size", "scales"):
            value = getattr(self, name)
            if (value is not None or name != "size") and (isinstance(value, bool) or not isinstance(value, int)):
                raise TypeError(f"expected {name} as an int, got {value!r}")
        if self.size is not None and self.size < 1:
            raise ValueError(f"expected a size of at least 1 pixel, got {self.size}")
        if self.scales < 1:
            raise ValueError(f"expected at least 1 of the scales, the model's own, got {self.scales}")
        check_choice("features", self.features, FEATURES)
        check_choice("foreground", self.foreground, FOREGROUNDS)
        if self.refine is not None:
            check_choice("refine", self.refine, FILTERS)

    def layer_of(self, depth: int) -> int:
        """The layer counted from 0."""
        if not -depth <= self.layer < depth:
            raise ValueError(f"expected a layer from {-depth} to {depth - 1}, got {self.layer}")
        return self.layer % depth


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse what is not among the known ones.

    Raises:
        ValueError: which names them, and the nearest where one is near.
    """
    if value not in known:
        near = difflib.get_close_matches(str(value), known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"expected {name} among {', '.join(known)}, got {value!r}{hint}")
