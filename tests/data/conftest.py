import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest


@contextmanager
def _unprivileged() -> Iterator[None]:
    user = os.geteuid()
    if user == 0:  # root may read everything, so be nobody meanwhile
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.fixture
def unprivileged() -> Callable[[], AbstractContextManager[None]]:
    """Makes a context in which file permissions hold, also where the tests run as root."""
    return _unprivileged


@pytest.fixture
def public_path() -> Iterator[Path]:
    """Like tmp_path, and any user may pass through it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
