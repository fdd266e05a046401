"""A service with the embedded model, in this process, and pictures to send it."""

import base64
import io
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("httpx")

from starlette.testclient import TestClient

from spit.serve.app import create_app
from spit.serve.models import Models
from spit.serve.options import ServeOptions

Png = Callable[..., bytes]
PATIENT = 300.0  # seconds; the machine may be busy


@pytest.fixture(scope="session")
def models() -> Models:
    return Models(["spit_tiny_16"], "cpu")


@pytest.fixture(scope="session")
def client(models: Models) -> Iterator[TestClient]:
    with TestClient(create_app(ServeOptions(time_limit=PATIENT), models), base_url="http://localhost") as one:
        wait_until_ready(one)
        yield one


def wait_until_ready(client: TestClient) -> None:
    """Wait until the kernels are compiled, which counts towards no request's time limit here."""
    while client.get("/ready").status_code != 200:
        time.sleep(0.05)


@pytest.fixture
def serve(models: Models) -> Iterator[Callable[..., TestClient]]:
    """``serve(queue=1)``: another service with the same model."""
    opened: list[TestClient] = []

    def start(**options: object) -> TestClient:
        app = create_app(ServeOptions(**{"time_limit": PATIENT, **options}), models)  # type: ignore[arg-type]
        opened.append(TestClient(app, base_url="http://localhost").__enter__())
        wait_until_ready(opened[-1])
        return opened[-1]

    yield start
    for one in opened:
        one.__exit__(None, None, None)


@pytest.fixture(scope="session")
def png() -> Png:
    """``png(80, 64, seed=1)``: a picture of 80 × 64 pixels with a bright disc on noise, as PNG."""

    def make(width: int = 80, height: int = 64, seed: int = 0, form: str = "PNG") -> bytes:
        random = np.random.default_rng(seed)
        pixels = random.integers(0, 60, (height, width, 3), np.uint8)
        rows, columns = np.mgrid[:height, :width]
        inside = (rows - height / 2) ** 2 + (columns - width / 2) ** 2 < (min(height, width) / 3) ** 2
        pixels[inside] += random.integers(120, 190, 3, np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, form)
        return file.getvalue()

    return make


@pytest.fixture(scope="session")
def encoded(png: Png) -> str:
    return base64.b64encode(png()).decode()
