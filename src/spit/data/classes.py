"""The 1,000 classes of ImageNet-1k."""

from functools import cache
from importlib.resources import files


@cache
def imagenet_classes() -> tuple[str, ...]:
    """The name of every class, at the index a model's logits give it.

    Two pairs of classes share a name (crane, maillot), so a name does not identify a class.
    """
    rows = files("spit.data").joinpath("imagenet_classes.tsv").read_text(encoding="utf-8").splitlines()
    return tuple(row.split("\t")[2] for row in rows)
