"""Variables of the environment that libraries read when they start."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def environment(**defaults: str) -> Iterator[None]:
    """Set variables that have no value. After the block all are as before it, also those that libraries have set."""
    before = dict(os.environ)
    os.environ.update({**defaults, **before})
    try:
        yield
    finally:
        for name in os.environ.keys() - before:
            del os.environ[name]
        os.environ.update(before)
