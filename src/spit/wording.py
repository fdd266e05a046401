"""Words of messages."""

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.65  # of two names by difflib; at 0.6 others are suggested that mean something else


def plural(count: int, noun: str, many: str | None = None) -> str:
    """``1 image``, ``2 images``, ``1,000 images``; ``many`` is the plural if it is not the noun and an s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {many or noun + 's'}"


def suggestion(word: object, known: Iterable[str], otherwise: str = "", count: int = 1) -> str:
    """``did you mean 'width'?`` if a known word is spelt alike, else ``otherwise``; at most ``count`` words."""
    near = get_close_matches(str(word), [*known], count, ALIKE)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else otherwise
