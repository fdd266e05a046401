import pytest


@pytest.fixture(scope="session", autouse=True)
def _triton() -> None:
    pytest.importorskip("triton", reason="no triton: pip install 'spit-vit[gpu]'")
