"""τ: tokenizers, image → partition."""

from difflib import get_close_matches
from typing import Any

from spit.tokenizers.base import Tokenizer
from spit.tokenizers.patch import PatchTokenizer
from spit.tokenizers.superpixel import SuperpixelTokenizer
from spit.tokenizers.voronoi import VoronoiTokenizer

__all__ = ["PatchTokenizer", "SuperpixelTokenizer", "Tokenizer", "VoronoiTokenizer", "create_tokenizer"]

_TOKENIZERS: dict[str, type[Tokenizer]] = {
    "patch": PatchTokenizer,
    "voronoi": VoronoiTokenizer,
    "superpixel": SuperpixelTokenizer,
}


def create_tokenizer(name: str, **options: Any) -> Tokenizer:
    """The tokenizer of that name: ``patch``, ``voronoi`` or ``superpixel``, with its own options."""
    if name not in _TOKENIZERS:
        near = get_close_matches(name, _TOKENIZERS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"expected a tokenizer among {', '.join(_TOKENIZERS)}, got {name!r}{hint}")
    kind = _TOKENIZERS[name]
    known = kind.__dataclass_fields__
    for option in options:
        if option not in known:
            near = get_close_matches(option, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it takes {', '.join(known)}"
            raise ValueError(f"tokenizer {name!r} has no option {option!r}{hint}")
    return kind(**options)
