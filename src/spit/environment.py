"""Variables of the environment that libraries read when they start."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def environment(**defaults: str) -> Iterator[None]:
    """Set variables that have no value, until the block ends."""
    missing = {name: value for name, value in defaults.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            os.environ.pop(name, None)
