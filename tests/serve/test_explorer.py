"""The routes of the page: what travels is what the library says, and every snippet reproduces its view."""

import base64
import io
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import psutil
import pytest
from PIL import Image
from starlette.testclient import TestClient

import spit
from spit.predictor import Predictor
from spit.segmentation.rle import decode_mask
from spit.serve.memory import release
from spit.serve.models import Models
from spit.serve.pictures import Pictures, region_table

OPTIONS = [{}, {"max_tokens": "20", "refine": "2", "compactness": "0.1"}, {"tokenizer": "patch"},
           {"tokenizer": "voronoi"}, {"model": "spit_tiny_16.masked_retrofit"}]


def add(client: TestClient, data: bytes, **options: str) -> dict[str, Any]:
    response = client.post("/explorer/pictures", files={"image": ("a.png", data, "image/png")}, data=options)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def get(client: TestClient, about: dict[str, Any], path: str) -> bytes:
    response = client.get(f"/explorer/pictures/{about['id']}/{path}")
    assert response.status_code == 200, response.text
    return response.content


def look(models: Models, data: bytes, options: dict[str, str]) -> Any:
    """The library's own prediction for the same options."""
    predictor: Predictor = models.get(options.get("model"))
    given = {name: float(value) if name == "compactness" else int(value) for name, value in options.items()
             if name in ("max_tokens", "refine", "compactness")}
    if given or "tokenizer" in options:
        predictor = predictor.with_tokenizer(options.get("tokenizer", "superpixel"), **given)
    return predictor(spit.load_image(data), crop=False)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_travels(client: TestClient, models: Models, png, options: dict[str, str]) -> None:
    about = add(client, png(120, 90), **options)
    prediction = look(models, png(120, 90), options)
    assert (about["width"], about["height"]) == (120, 90)
    assert about["tokens"] == int(prediction.partition.counts[0])
    assert [one["name"] for one in about["classes"]] == [guess.name for guess in prediction.top(10)[0]]
    np.testing.assert_array_equal(np.array(Image.open(io.BytesIO(get(client, about, "image.png")))),
                                  np.array(Image.open(io.BytesIO(png(120, 90)))))

    counts = [level["regions"] for level in about["levels"]]
    labels = np.frombuffer(get(client, about, "labels.bin"), "<u2").reshape(about["height"], about["width"])
    assert counts[0] == 120 * 90
    assert labels.max() + 1 == counts[about["label_level"]]
    parents, rest = np.frombuffer(get(client, about, "parents.bin"), "<u2"), counts[about["label_level"] :]
    assert len(parents) == sum(rest[:-1])
    found = {about["label_level"]: labels}
    for level, count in enumerate(rest[:-1], start=about["label_level"]):
        way, parents = parents[:count], parents[count:]
        labels = way[labels]
        assert len(np.unique(labels)) == counts[level + 1]
        found[level + 1] = labels
    np.testing.assert_array_equal(found[about["token_level"]], prediction.partition.labels[0])
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] <= 4

    tokens = np.frombuffer(get(client, about, "tokens.bin"), "<f2").reshape(about["tokens"], about["width_of_token"])
    np.testing.assert_allclose(tokens, prediction.tokens.values, rtol=2e-3, atol=1e-3)
    regions = np.frombuffer(get(client, about, "regions.bin"), "<f4").reshape(about["tokens"], 8)
    assert regions[:, 0].sum() == 120 * 90
    rows = about["tokens"] + 1
    attention = np.frombuffer(get(client, about, "attention.bin?layer=3"), "<f2").reshape(about["heads"], rows, rows)
    np.testing.assert_allclose(attention.astype(np.float32).sum(2), 1, atol=5e-3)
    image = spit.load_image(png(120, 90))[None]
    own = prediction.predictor.model(image, record=("attention",)).attention[3][0]
    np.testing.assert_allclose(attention, own.detach(), atol=1e-3)


def test_a_large_picture_is_seen_smaller(client: TestClient, png) -> None:
    about = add(client, png(700, 350), max_side="200")
    assert (about["width"], about["height"]) == (200, 100)
    assert len(get(client, about, "labels.bin")) == 2 * 200 * 100


def test_regions() -> None:
    image = np.zeros((3, 3, 4), np.uint8)
    image[0, :, 2:] = 255
    labels = np.array([[0, 0, 1, 1]] * 3, np.int32)
    table = region_table(__import__("torch").from_numpy(image), labels, 2)
    np.testing.assert_allclose(table[:, 0], [6, 6])
    np.testing.assert_allclose(table[:, 1], [0, 1])
    np.testing.assert_allclose(table[:, 5], [1, 3])
    np.testing.assert_allclose(table[:, 6], [1.5, 1.5])
    np.testing.assert_allclose(table[:, 7], [10, 10])


@pytest.mark.parametrize("method", ["relevance", "flow", "lime"])
def test_explain(client: TestClient, models: Models, png, method: str) -> None:
    about = add(client, png())
    response = client.post(f"/explorer/pictures/{about['id']}/explain?job=mine",
                           json={"method": method, "target": 281, "samples": 24})
    values = np.frombuffer(response.content, "<f2").reshape(
        [int(side) for side in response.headers["x-shape"].split(",")]) * float(response.headers["x-scale"])
    prediction = look(models, png(), {})
    chosen = method if method in ("relevance", "flow") else spit.attribution.create_method(method, samples=24)
    expected = prediction.explain(chosen, 281)[0].numpy()
    painted = values if method == "lime" else values[prediction.partition.labels[0].numpy()]
    np.testing.assert_allclose(painted, expected, atol=0.03 * np.abs(expected).max())  # of tiny probabilities
    progress = client.get("/explorer/jobs/mine").json()
    assert progress["done"] == progress["total"] == (1 if method in ("relevance", "flow") else 24)


def test_segment(client: TestClient, models: Models, png) -> None:
    about = add(client, png())
    found = client.post(f"/explorer/pictures/{about['id']}/segment", json={"clean": False, "method": "cut"}).json()
    expected = look(models, png(), {}).segment(clean=False, method="cut")
    mask = expected.mask[0].numpy()
    np.testing.assert_array_equal(decode_mask(**found["mask"]), mask)
    bits = np.unpackbits(np.frombuffer(base64.b64decode(found["pixels"]), np.uint8))[: mask.size]
    np.testing.assert_array_equal(bits.reshape(mask.shape), mask)
    values = np.frombuffer(base64.b64decode(found["values"]), "<f2")
    np.testing.assert_allclose(values, expected.values, rtol=1e-2, atol=1e-2)


def test_correspond(client: TestClient, png) -> None:
    one, other = add(client, png(80, 64, 1)), add(client, png(64, 64, 2))
    found = client.post("/explorer/correspond", json={"source": one["id"], "targets": [other["id"]]}).json()
    assert len(found["source"]) == one["tokens"]
    assert [len(side) for side in found["targets"]] == [other["tokens"]]
    assert set(found["source"]) <= {0, 1}
    third = add(client, png(), model="rvit_tiny_16.deit_retrofit")
    refused = client.post("/explorer/correspond", json={"source": one["id"], "targets": [third["id"]]})
    assert refused.status_code == 422


def test_samples(client: TestClient) -> None:
    samples = client.get("/explorer/samples").json()
    assert len(samples) >= 3
    for sample in samples:
        picture = client.get(sample["url"])
        assert picture.headers["content-type"] == "image/png"
        assert max(Image.open(io.BytesIO(picture.content)).size) <= 512


def test_about(client: TestClient) -> None:
    about = client.get("/explorer/about").json()
    assert about["model"] == about["models"][0] == "spit_tiny_16"
    assert about["limits"]["bytes"] == 16 * 2**20
    assert {"name": "relevance", "of_class": True, "slow": False} in about["methods"]


def test_old_pictures_go(serve, png) -> None:
    client = serve(pictures=3)
    first, second, third = (add(client, png(seed=seed)) for seed in range(3))
    assert get(client, first, "image.png")  # so that the second is the one used longest ago
    add(client, png(seed=99))
    assert client.get(f"/explorer/pictures/{second['id']}/image.png").status_code == 404
    assert get(client, first, "image.png")
    assert get(client, third, "image.png")
    assert len(Pictures(1, 1)) == 0


def test_pictures_are_bounded_by_bytes(serve, png) -> None:
    """Passes go first, then whole pictures; what is computed again is the same."""
    client, sides = serve(pictures=1000, picture_megabytes=12), (160, 128)
    kept = client.app.state.service.pictures
    first = add(client, png(*sides, seed=1))
    about = f"/explorer/pictures/{first['id']}"
    tokens, mask = get(client, first, "tokens.bin"), client.post(f"{about}/segment", json={}).json()
    whole = kept.nbytes
    passes = sum(one.nbytes for one in kept.get(first["id"])._prediction.passes)
    assert whole > passes > first["tokens"] * first["layers"] * first["width_of_token"] * 4
    others: list[dict[str, Any]] = []
    while kept.get(first["id"])._prediction is not None:
        others.append(add(client, png(*sides, seed=len(others) + 2)))
        kept._kept.move_to_end(first["id"], last=False)  # looking at it counts as use
        assert kept.nbytes <= 12 * 2**20
    assert get(client, first, "tokens.bin") == tokens
    assert client.post(f"{about}/segment", json={}).json() == mask
    assert kept._kept[first["id"]]._prediction is not None
    for one in others:
        response = client.post(f"/explorer/pictures/{one['id']}/explain", json={})
        assert response.status_code == 200
        [looked] = kept._kept[one["id"]]._prediction.passes
        assert list(looked._traces) == [False]  # no graph outlives the answer
        assert kept.nbytes <= 12 * 2**20
    seed = 100
    while kept.get(first["id"]) is not None:
        kept._kept.move_to_end(first["id"], last=False)
        last = add(client, png(*sides, seed=seed))
        for path in ("image.png", "labels.bin", "regions.bin", "tokens.bin"):
            get(client, last, path)
        assert kept.nbytes <= 12 * 2**20
        seed += 1
    assert client.get(f"{about}/image.png").status_code == 404
    assert 1 < len(kept) < 100
    kept._most_bytes = 1
    kept.trim()
    assert len(kept) == 1  # the last one stays, or the page could show nothing
    assert get(client, last, "image.png")


def test_memory_goes_back() -> None:
    """Small blocks with one kept at the end stay in glibc's arena until they are released."""
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the C library cannot give memory back")
    blocks = [bytes(60_000) for _ in range(4000)]
    last = bytes(60_000)
    full = _resident()
    del blocks
    release()
    assert full - _resident() > 150
    assert len(last) == 60_000


def _resident() -> float:
    """MB."""
    return psutil.Process().memory_info().rss / 1e6


def run_snippet(client: TestClient, about: dict[str, Any], query: str, more: str, folder: Path) -> str:
    """The last line that a snippet of a view prints, with a line more at its end."""
    code = get(client, about, f"snippet?{query}&name=cat.png").decode()
    ended = subprocess.run([sys.executable, "-W", "error", "-c", f"{code}\n{more}"], cwd=folder, capture_output=True,
                           text=True, check=False)
    assert ended.returncode == 0, f"{code}\n{ended.stderr}"
    return ended.stdout.splitlines()[-1]


@pytest.fixture
def cat(png, tmp_path: Path) -> bytes:
    """A picture whose file has the name that snippets read; larger than the page's size."""
    (tmp_path / "cat.png").write_bytes(png(150, 120))
    return (tmp_path / "cat.png").read_bytes()


def test_snippet_of_classify(client: TestClient, cat: bytes, tmp_path: Path) -> None:
    about = add(client, cat, max_tokens="30", max_side="100")
    said = run_snippet(client, about, "view=classify", "print([guess.name for guess in prediction.top(10)[0]])",
                       tmp_path)
    assert said == str([one["name"] for one in about["classes"]])


@pytest.mark.parametrize("asked", [{"method": "relevance", "target": "tabby"},
                                   {"method": "token_rise", "target": "3", "samples": 16}])
def test_snippet_of_explain(client: TestClient, cat: bytes, tmp_path: Path, asked: dict[str, Any]) -> None:
    about = add(client, cat, tokenizer="patch", max_side="100")
    said = run_snippet(client, about, f"view=explain&{urlencode(asked)}", "print(float(values.abs().max()))", tmp_path)
    response = client.post(f"/explorer/pictures/{about['id']}/explain", json=asked)
    assert float(said) == pytest.approx(float(response.headers["x-scale"]), rel=1e-3)


def test_snippet_of_segment(client: TestClient, cat: bytes, tmp_path: Path) -> None:
    about = add(client, cat, max_side="100")
    said = run_snippet(client, about, "view=segment&clean=false&method=cut", "print(int(mask.sum()))", tmp_path)
    found = client.post(f"/explorer/pictures/{about['id']}/segment", json={"clean": False, "method": "cut"}).json()
    assert said == str(found["area"])


def test_snippet_of_a_mask_changed_by_hand(client: TestClient, cat: bytes, tmp_path: Path) -> None:
    """Below the tokens, at them and above them: what is under a region is inside or outside."""
    about = add(client, cat, max_side="100")
    picture = client.app.state.service.pictures.get(about["id"])  # type: ignore[attr-defined]
    found = client.post(f"/explorer/pictures/{about['id']}/segment", json={}).json()
    mask = decode_mask(**found["mask"])
    labels, token = picture.labels, picture.token_level
    edits, level = [], about["label_level"]
    for way in np.split(np.frombuffer(picture.parents, "<u2"), np.cumsum(picture.counts[level:-1])):
        if level in (token - 1, token, token + 1):
            region = int(labels[40 + 15 * (level - token), 50])
            edits.append(f"{level}:{region}:{int(level != token)}")
            mask[labels == region] = level != token
        labels = way[labels] if len(way) else labels
        level += 1
    assert len(edits) == 3
    said = run_snippet(client, about, f"view=segment&edits={','.join(edits)}", "print(int(mask.sum()))", tmp_path)
    assert said == str(int(mask.sum()))
    assert client.get(f"/explorer/pictures/{about['id']}/snippet?view=segment&edits=0:99999:1").status_code == 422


def test_snippet_of_tokens(client: TestClient, cat: bytes, tmp_path: Path) -> None:
    about = add(client, cat, max_side="100")
    said = run_snippet(client, about, "view=tokens&layer=2",
                       "print(len(tokens), tuple(attention.shape), float(attention[1, 0, 1]))", tmp_path)
    attention = np.frombuffer(get(client, about, "attention.bin?layer=2"), "<f2").reshape(
        about["heads"], about["tokens"] + 1, -1)
    assert said.startswith(f"{about['tokens']} {attention.shape} ")
    assert float(said.split()[-1]) == pytest.approx(float(attention[1, 0, 1]), rel=2e-3)


def test_snippet_of_correspond(client: TestClient, png, cat: bytes, tmp_path: Path) -> None:
    about, others = add(client, cat, max_side="100"), [add(client, png(64, 64, 3)), add(client, png(90, 60, 4))]
    for name in ("a dog's.png", "third.png"):
        (tmp_path / name).write_bytes(png(64, 64, 3) if name != "third.png" else png(90, 60, 4))
    asked = {"view": "correspond", "others": [one["id"] for one in others], "names": ["a dog's.png", "third.png"]}
    said = run_snippet(client, about, urlencode(asked, doseq=True), "print(best.tolist())", tmp_path)
    first, last = (np.frombuffer(get(client, one, "tokens.bin"), "<f2").astype(np.float32).reshape(one["tokens"], -1)
                   for one in (about, others[1]))
    cosines = (first / np.linalg.norm(first, axis=1, keepdims=True)) @ (
        last / np.linalg.norm(last, axis=1, keepdims=True)).T
    assert json.loads(said) == pytest.approx(cosines.max(1).tolist(), abs=2e-3)


@pytest.mark.parametrize("compared", ["tokenizers=patch,superpixel", "models=spit_tiny_16,rvit_tiny_16.deit_retrofit"])
def test_snippet_of_compare(client: TestClient, cat: bytes, tmp_path: Path, compared: str) -> None:
    kind, _, names = compared.partition("=")
    options = {"max_side": "100", "tokenizer": "superpixel", "compactness": "0.3"}
    about = add(client, cat, **options)
    said = run_snippet(client, about, f"view=compare&{compared}", "print(int(other.partition.counts[0]), "
                       "other.top(1)[0][0].name)", tmp_path)
    shown = add(client, cat, **options, **({"model": names.split(",")[1]} if kind == "models" else {}))
    assert said == f"{shown['tokens']} {shown['classes'][0]['name']}"
    assert client.get(f"/explorer/pictures/{about['id']}/snippet?view=compare&{kind}=nowhere").status_code == 422
