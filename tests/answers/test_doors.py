"""One photo, every door: the same bits."""

import base64
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from skimage.data import chelsea, coffee, retina

import spit
from spit.answers import Classify, Explain, Segment
from spit.predictor import SEEN
from spit.segmentation.rle import decode_mask

MODEL = "spit_tiny_16"
PHOTOS = {"cat": chelsea()[:200], "cup": coffee(), "eye": retina()[300:1000, 100:1000]}
Array = NDArray[Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three photos of different sizes; a model sees the largest reduced."""
    made = tmp_path_factory.mktemp("photos")
    for name, pixels in PHOTOS.items():
        Image.fromarray(pixels).save(made / f"{name}.png")
    assert PHOTOS["eye"][:, :, 0].size > SEEN
    return made


@pytest.fixture(scope="module")
def predictor() -> spit.Predictor:
    return spit.load(MODEL, device="cpu")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    pytest.importorskip("httpx")
    from starlette.testclient import TestClient

    from spit.serve.app import create_app
    from spit.serve.models import Models
    from spit.serve.options import ServeOptions

    with TestClient(create_app(ServeOptions(time_limit=300), Models([MODEL], "cpu")),
                    base_url="http://localhost") as one:
        yield one


def post(client: Any, path: str, photo: Path, **options: Any) -> dict[str, Any]:
    """What a route says of a photo."""
    response = client.post(path, files={"image": photo.read_bytes()}, data={
        name: json.dumps(value) if isinstance(value, bool) else str(value) for name, value in options.items()})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def ask_picture(client: Any, verb: str, photo: Path, **options: Any) -> Any:
    """What the explorer's page is told of a photo."""
    about = post(client, "/explorer/pictures", photo)
    response = client.post(f"/explorer/pictures/{about['id']}/{verb}", json=options)
    assert response.status_code == 200, response.text
    return about, response


def run(verb: str, *arguments: object) -> dict[str, Any]:
    """What a verb says, in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "spit.cli", verb, *map(str, arguments), "--model", MODEL, "--device",
                           "cpu", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def batch(folder: Path, output: Path, op: str, *arguments: str, workers: int = 0) -> dict[str, dict[str, Any]]:
    """The rows of a corpus by the name of the photo."""
    pytest.importorskip("pyarrow", reason="the extra batch is not installed")
    from spit.batch.run import read_rows

    run("batch", folder, "-o", output, "--op", op, *arguments, "--workers", workers)
    return {Path(row["key"]).stem: row for row in read_rows(output).to_pylist()}


def test_masks(folder: Path, predictor: spit.Predictor, client: Any, tmp_path: Path) -> None:
    run("segment", folder, "-o", tmp_path)
    for name, pixels in PHOTOS.items():
        photo = folder / f"{name}.png"
        expected = Segment().ask(predictor, photo).mask[0].numpy()
        assert expected.shape == pixels.shape[:2]
        assert 0 < expected.mean() < 1
        prediction = predictor(photo, crop=False)
        masks = {
            "spit segment": np.asarray(Image.open(tmp_path / f"{name}.mask.png")) == 255,
            "spit.segment": spit.segment(predictor.model, photo).mask[0].numpy(),
            "prediction.segment": prediction.segment().mask[0].numpy(),
            "/v1/segment": decode_mask(**post(client, "/v1/segment", photo)["mask"]),
            "the explorer": decode_mask(**ask_picture(client, "segment", photo)[1].json()["mask"])}
        for door, mask in masks.items():
            assert np.array_equal(mask, expected), (name, door)
        plain = prediction.segment(merge=False).mask[0].numpy()
        assert np.array_equal(plain, spit.segment(predictor, photo, merge=False).mask[0].numpy())
        assert np.array_equal(plain, decode_mask(**post(client, "/v1/segment", photo, merge=False)["mask"]))


@pytest.mark.parametrize("workers", [0, 1], ids=["here", "ray"])
def test_masks_of_a_corpus(folder: Path, predictor: spit.Predictor, tmp_path: Path, workers: int) -> None:
    if workers:
        pytest.importorskip("ray", reason="the extra batch is not installed")
    rows = batch(folder, tmp_path / "run", "segment", workers=workers)
    for name, pixels in PHOTOS.items():
        assert np.array_equal(decode_mask(**rows[name]["mask"]), spit.segment(predictor, pixels).mask[0].numpy()), name


def test_classes(folder: Path, predictor: spit.Predictor, client: Any, tmp_path: Path) -> None:
    """Of the central square; of the whole picture where a page or a map shows that."""
    said = {Path(one["image"]).stem: one["top"] for one in run("classify", folder, "--top", 3)["images"]}
    rows = batch(folder, tmp_path / "run", "classify", "--top", "3")
    for name in PHOTOS:
        photo = folder / f"{name}.png"
        prediction = predictor(photo)
        expected = [one.to_dict() for one in Classify(3).of(prediction)[0]]
        assert [(one["name"], one["probability"]) for one in expected] == prediction.top(3)[0]
        answer = post(client, "/v1/classify", photo, top=3)
        assert said[name] == answer["classes"] == expected
        assert answer["seen"] == [predictor.size, predictor.size]
        assert rows[name]["top"] == [{**one, "probability": float(np.float32(one["probability"]))} for one in expected]
        whole = Classify(10, crop=False).ask(predictor, photo)[0]
        assert post(client, "/explorer/pictures", photo)["classes"] == [one.to_dict() for one in whole]


def array(found: dict[str, Any]) -> Array:
    return np.frombuffer(base64.b64decode(found["data"]), found["dtype"]).reshape(found["shape"])


@pytest.mark.parametrize("crop", [True, False], ids=["square", "whole"])
def test_maps(folder: Path, predictor: spit.Predictor, client: Any, tmp_path: Path, crop: bool) -> None:
    run("explain", folder, "-o", tmp_path, "--method", "relevance", *([] if crop else ["--whole"]))
    for name, pixels in PHOTOS.items():
        photo = folder / f"{name}.png"
        expected = predictor(photo, crop=crop).explain()[0].numpy()
        assert expected.shape == ((predictor.size,) * 2 if crop else pixels.shape[:2])
        answer = post(client, "/v1/explain", photo, **({} if crop else {"crop": False}))
        assert answer["crop"] == crop
        maps = {
            "spit explain": np.load(tmp_path / f"{name}.relevance.npy", allow_pickle=False),
            "spit.explain": spit.explain(predictor, photo, crop=crop)[0].numpy(),
            "Explain": Explain(crop=crop).ask(predictor, photo)[0].numpy(),
            "/v1/explain": array(answer["map"])}
        for door, values in maps.items():
            assert np.array_equal(values, expected), (name, door)


def test_maps_of_a_corpus_and_of_the_page(folder: Path, predictor: spit.Predictor, client: Any, tmp_path: Path) -> None:
    """A corpus keeps 256 steps of each map, and the page half floats of each token."""
    rows = batch(folder, tmp_path / "run", "explain")
    for name in PHOTOS:
        photo = folder / f"{name}.png"
        expected, row = predictor(photo).explain()[0].numpy(), rows[name]
        assert (row["low"], row["high"]) == (expected.min(), expected.max())
        grey = np.asarray(Image.open(io.BytesIO(row["map"])))
        assert np.array_equal(grey, np.rint((expected - row["low"]).astype(float) * 255 / (row["high"] - row["low"])))
        prediction = predictor(photo, crop=False)
        _, response = ask_picture(client, "explain", photo, method="relevance")
        values = np.frombuffer(response.content, "<f2")
        scale = float(response.headers["x-scale"])
        [painted] = prediction.paint(predictor.model.head.linear.weight.new_tensor(values.astype(np.float32)))
        assert np.array_equal(painted.numpy().astype("<f2"), (prediction.explain()[0].numpy() / scale).astype("<f2"))


def test_the_runtime(folder: Path, predictor: spit.Predictor, tmp_path: Path) -> None:
    for package in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="the extra export is not installed")
    import spit.runtime
    from spit.export import export

    runtime = spit.runtime.load(export(predictor.model, tmp_path / "model.onnx").path, threads=1)
    for name, pixels in PHOTOS.items():
        answer, prediction = runtime(folder / f"{name}.png"), predictor(pixels)
        assert np.array_equal(answer.labels, prediction.partition.labels[0].numpy())
        assert answer.top(1)[0].name == prediction.top(1)[0][0].name
