"""The API answers as the library does, whether asked by multipart or JSON."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from starlette.testclient import TestClient

import spit
from spit.predictor import Predictor
from spit.segmentation.rle import decode_mask
from spit.serve.models import Models

ROUTES = ["tokenize", "classify", "explain", "segment", "embed"]


@pytest.fixture(scope="module")
def predictor(models: Models) -> Predictor:
    return models.get()


def array(found: dict) -> np.ndarray:
    values = np.frombuffer(base64.b64decode(found["data"]), found["dtype"]).reshape(found["shape"])
    return values.astype(np.float32) * found["scale"]


@pytest.mark.parametrize("route", ROUTES)
def test_multipart_and_json_are_the_same(client: TestClient, png, encoded: str, route: str) -> None:
    one = client.post(f"/v1/{route}", files={"image": ("a.png", png(), "image/png")})
    other = client.post(f"/v1/{route}", json={"image": encoded})
    assert one.status_code == other.status_code == 200, one.text
    assert one.json() == other.json()
    third = client.post(f"/v1/{route}", json={"image": f"data:image/png;base64,{encoded}"})
    assert third.json() == one.json()


def test_classify(client: TestClient, predictor: Predictor, png) -> None:
    answer = client.post("/v1/classify", files={"image": png()}, data={"top": "3"}).json()
    expected = predictor(spit.load_image(png()), crop=True)
    assert [one["name"] for one in answer["classes"]] == [guess.name for guess in expected.top(3)[0]]
    assert answer["tokens"] == int(expected.partition.counts[0])


def test_tokenize(client: TestClient, predictor: Predictor, png) -> None:
    answer = client.post("/v1/tokenize", files={"image": png()}, data={"max_tokens": "9"}).json()
    expected = predictor.with_tokenizer("superpixel", max_tokens=9).model.tokenizer(spit.load_image(png()))
    labels = np.array(Image.open(io.BytesIO(base64.b64decode(answer["labels"]["png"]))))
    assert answer["tokens"] <= 9
    np.testing.assert_array_equal(labels, expected.labels[0])


def test_tokenize_shrinks(client: TestClient, png) -> None:
    answer = client.post("/v1/tokenize", files={"image": png(100, 50)}, data={"max_side": "40"}).json()
    assert (answer["width"], answer["height"]) == (40, 20)


@pytest.mark.parametrize("tokenizer", ["patch", "voronoi", "superpixel"])
def test_embed(client: TestClient, predictor: Predictor, png, tokenizer: str) -> None:
    answer = client.post("/v1/embed", files={"image": png()}, data={"tokens": "true", "tokenizer": tokenizer}).json()
    expected = predictor.with_tokenizer(tokenizer)(spit.load_image(png()), crop=False)
    torch.testing.assert_close(torch.tensor(answer["embedding"]), expected.class_token[0])
    values = array(answer["token_values"])
    np.testing.assert_allclose(values, expected.tokens.values, atol=2e-3 * np.abs(values).max())


@pytest.mark.parametrize("method", ["relevance", "flow", "prototype", "token_rise", "random"])
def test_explain(client: TestClient, predictor: Predictor, png, method: str) -> None:
    asked = {"method": method, "target": "tabby", "samples": "16"}
    answer = client.post("/v1/explain", files={"image": png()}, data=asked).json()
    chosen = spit.attribution.TokenRise(samples=16) if method == "token_rise" else method
    expected = predictor(spit.load_image(png())).explain(chosen, "tabby")[0].numpy()
    np.testing.assert_array_equal(array(answer["map"]), expected)
    assert (answer["target"] is None) == (method in ("flow", "random"))
    assert answer["target"] is None or answer["target"]["name"] == "tabby"


@pytest.mark.parametrize("clean", [True, False])
def test_segment(client: TestClient, predictor: Predictor, png, clean: bool) -> None:
    answer = client.post("/v1/segment", files={"image": png()}, data={"clean": str(clean)}).json()
    expected = predictor(spit.load_image(png()), crop=False).segment(clean=clean).mask[0].numpy()
    mask = decode_mask(**answer["mask"])
    np.testing.assert_array_equal(mask, expected)
    assert answer["area"] == expected.sum()
    x, y, width, height = answer["box"]
    assert mask[y : y + height, x : x + width].sum() == mask.sum()


def test_a_mask_has_the_size_of_the_image(client: TestClient, png) -> None:
    answer = client.post("/v1/segment", files={"image": png(900, 700)}).json()
    assert answer["mask"]["size"] == [700, 900]


def test_correspond(client: TestClient, predictor: Predictor, png) -> None:
    images = [png(80, 64, 1), png(64, 64, 2), png(48, 72, 3)]
    files = [("source", images[0]), ("targets", images[1]), ("targets", images[2])]
    answer = client.post("/v1/correspond", files=files).json()
    other = client.post("/v1/correspond", json={"source": base64.b64encode(images[0]).decode(), "targets": [
        base64.b64encode(image).decode() for image in images[1:]]}).json()
    assert answer == other
    source, *targets = map(spit.load_image, images)
    found = spit.correspond(predictor(source, crop=False), predictor(targets, crop=False))
    assert [(one["height"], one["width"]) for one in answer["targets"]] == [one.shape[:2] for one in found.targets]
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(answer["targets"][1]["png"]))))
    np.testing.assert_allclose(pixels / 255, found.targets[1], atol=0.01)


def test_another_model(client: TestClient, png) -> None:
    answer = client.post("/v1/classify", files={"image": png()}, data={"model": "rvit_tiny_16.deit_retrofit"}).json()
    assert answer["model"] == "rvit_tiny_16.deit_retrofit"


def test_models_of_runs_have_the_names_of_the_runs(tmp_path: Path) -> None:
    sources = [tmp_path / "mine/model", tmp_path / "other/mine/model", tmp_path / "tiny"]
    for folder in sources:
        spit.save_model(spit.create_model("spit_tiny_16", depth=1, width=24, heads=2, num_classes=3), folder)
    models = Models([str(source) for source in sources], "cpu")
    assert models.names[:3] == ["mine", "mine-2", "tiny"]
    assert models.get("mine-2").name == "mine-2"


def test_models(client: TestClient) -> None:
    models = client.get("/v1/models").json()["models"]
    assert models[0]["name"] == "spit_tiny_16"
    assert [one["default"] for one in models] == [True] + [False] * (len(models) - 1)
    assert "relevance" in models[0]["methods"]
    assert "spit_tiny_16.deit_retrofit" not in [one["name"] for one in models]  # the default, by its other name


@pytest.mark.parametrize("prefix", ["", "/v1"])
def test_status(client: TestClient, png, prefix: str) -> None:
    client.post("/v1/classify", files={"image": png()})
    assert client.get(f"{prefix}/health").json() == {"status": "ok", "version": spit.__version__}
    assert client.get(f"{prefix}/ready").status_code == 200
    text = client.get(f"{prefix}/metrics").text
    assert 'spit_requests_total{method="POST",route="/v1/classify",status="200"}' in text
    assert "spit_batch_jobs_sum" in text


def test_every_operation_has_an_example(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    assert set(document["paths"]) == {f"/v1/{name}" for name in (
        *ROUTES, "correspond", "models", "health", "ready", "metrics")}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["description"]
            if "requestBody" in operation:
                example = operation["requestBody"]["content"]["application/json"]["example"]
                assert client.post(path, json=example).status_code == 200
