"""τ: tokenizers, image → partition."""

from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from spit.tokenizers.base import Tokenizer
from spit.tokenizers.patch import PatchTokenizer
from spit.tokenizers.superpixel import SuperpixelTokenizer
from spit.tokenizers.voronoi import VoronoiTokenizer

__all__ = [
    "TOKENIZERS",
    "PatchTokenizer",
    "SuperpixelTokenizer",
    "Tokenizer",
    "VoronoiTokenizer",
    "create_tokenizer",
]

TOKENIZERS: dict[str, type[Tokenizer]] = {
    kind.name: kind for kind in (PatchTokenizer, VoronoiTokenizer, SuperpixelTokenizer)
}


def create_tokenizer(name: str, **options: Any) -> Tokenizer:
    """The tokenizer of that name: ``patch``, ``voronoi`` or ``superpixel``, with its own options."""
    if name not in TOKENIZERS:
        near = get_close_matches(name, TOKENIZERS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"expected a tokenizer among {', '.join(TOKENIZERS)}, got {name!r}{hint}")
    kind = TOKENIZERS[name]
    known = [field.name for field in fields(kind)]
    for option in options:
        if option not in known:
            near = get_close_matches(option, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it takes {', '.join(known)}"
            raise ValueError(f"tokenizer {name!r} has no option {option!r}{hint}")
    return kind(**options)
