"""τ: tokenizers, image → partition."""

from typing import Any, cast

from spit.parts import TOKENIZERS
from spit.tokenizers.base import Tokenizer
from spit.tokenizers.nested import NestedTokenizer
from spit.tokenizers.patch import PatchTokenizer
from spit.tokenizers.superpixel import SuperpixelTokenizer
from spit.tokenizers.voronoi import VoronoiTokenizer

__all__ = [
    "TOKENIZERS", "NestedTokenizer", "PatchTokenizer", "SuperpixelTokenizer", "Tokenizer", "VoronoiTokenizer",
    "create_tokenizer",
]

for _name, _kind in (("patch", PatchTokenizer), ("voronoi", VoronoiTokenizer), ("superpixel", SuperpixelTokenizer)):
    TOKENIZERS.register(_name, _kind)


def create_tokenizer(name: str, **options: Any) -> Tokenizer:
    """Make a tokenizer by name: ``patch``, ``voronoi``, ``superpixel``, or one that you registered.

    Example:
        >>> import spit
        >>> spit.create_tokenizer("voronoi", cells=64)
        VoronoiTokenizer(cells=64, seed=0)
    """
    return cast(Tokenizer, TOKENIZERS.create(name, options))
