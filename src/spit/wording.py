"""Words of messages."""


def plural(count: int, noun: str, many: str | None = None) -> str:
    """``1 image``, ``2 images``, ``1,000 images``; ``many`` is the plural if it is not the noun and an s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {many or noun + 's'}"
