"""What the service refuses: each with its code, one sentence, no path, and without harm to others."""

import base64
import io
import json
import re
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient

from spit.serve.errors import CODES
from spit.serve.options import ServeOptions

ROOT = str(Path(__file__).parents[2])


def refusal(response, code: str) -> str:
    assert response.status_code == CODES[code][0], response.text
    found = response.json()["error"]
    assert set(response.json()) == {"error"}
    assert set(found) == {"code", "message"}
    assert found["code"] == code, found
    message: str = found["message"]
    assert message.endswith(".")
    assert "\n" not in message
    assert ROOT not in response.text
    assert not re.search(r"/(home|work|tmp|usr|root)/", response.text)
    assert "Traceback" not in response.text
    return message


def bomb(width: int, height: int) -> bytes:
    """A PNG whose header promises many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


@pytest.mark.parametrize("data", [b"", b"not an image", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"<svg/>", b"%!PS-Adobe"])
def test_no_image(client: TestClient, data: bytes) -> None:
    refusal(client.post("/v1/classify", json={"image": base64.b64encode(data).decode() or "===="}),
            "invalid_image" if data else "invalid_request")
    refusal(client.post("/explorer/pictures", files={"image": ("a.png", data, "image/png")}), "invalid_image")


def test_a_truncated_image(client: TestClient, png) -> None:
    refusal(client.post("/v1/classify", files={"image": png()[:2000]}), "invalid_image")
    refusal(client.post("/explorer/pictures", files={"image": png(form="JPEG")[:500]}), "invalid_image")


@pytest.mark.parametrize("side", [6000, 60000])
def test_pixels_are_counted_before_decoding(client: TestClient, side: int) -> None:
    refusal(client.post("/v1/segment", files={"image": bomb(side, side)}), "image_too_large")


def test_pixels_of_all_images_count(serve, png) -> None:
    client = serve(max_pixels=10_000)
    images = [("source", png(80, 80)), ("targets", png(80, 80))]
    refusal(client.post("/v1/correspond", files=images), "image_too_large")
    assert client.post("/v1/correspond", files=[("source", png(64, 64)), ("targets", png(64, 64))]).status_code == 200


def test_too_many_bytes(serve) -> None:
    client = serve(max_megabytes=1)
    refusal(client.post("/v1/classify", files={"image": b"\0" * 2**20}), "image_too_large")
    chunks = (b"\0" * 2**16 for _ in range(40))  # no content-length
    refusal(client.post("/v1/classify", content=chunks, headers={"Content-Type": "application/json"}),
            "image_too_large")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "image/png"])
def test_other_content_types(client: TestClient, png, kind: str) -> None:
    refusal(client.post("/v1/classify", content=png(), headers={"Content-Type": kind}), "unsupported_media_type")


def test_a_part_of_another_type(client: TestClient, png) -> None:
    refusal(client.post("/v1/classify", files={"image": ("a.html", png(), "text/html")}), "unsupported_media_type")


@pytest.mark.parametrize("body", ["", "{", "[]", "null", "NaN", '{"image": NaN}', "[" * 100_000, "9" * 5000,
                                  '{"image": "' + "\\ud800" + '"}'])
def test_bad_json(client: TestClient, body: str) -> None:
    response = client.post("/v1/classify", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 422)
    refusal(response, response.json()["error"]["code"])


@pytest.mark.parametrize("body", [b"", b"--x", b"--x\r\n\r\n",
                                  b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--"])
def test_bad_multipart(client: TestClient, body: bytes) -> None:
    for boundary in ("; boundary=x", "", "; boundary="):
        response = client.post("/v1/classify", content=body, headers={
            "Content-Type": f"multipart/form-data{boundary}"})
        assert response.status_code in (400, 422)
        refusal(response, response.json()["error"]["code"])


@pytest.mark.parametrize("fields", [
    {"model": "nowhere"}, {"model": "/etc/passwd"}, {"model": "../../etc"}, {"max_tokens": 0}, {"max_tokens": "many"},
    {"compactness": 2}, {"tokenizer": "slic"}, {"top": 0}, {"unknown": 1}, {"refine": -1}, {"top": 1e99},
    {"tokenizer": "patch", "max_tokens": 9}])
def test_bad_fields(client: TestClient, encoded: str, fields: dict) -> None:
    message = refusal(client.post("/v1/classify", json={"image": encoded, **fields}), "invalid_request")
    assert next(iter(fields)) in message or "max_tokens" in message


def test_bad_targets_and_methods(client: TestClient, encoded: str) -> None:
    assert "tabby" in refusal(client.post("/v1/explain", json={"image": encoded, "target": "tabbi"}), "invalid_request")
    refusal(client.post("/v1/explain", json={"image": encoded, "target": 1000}), "invalid_request")
    refusal(client.post("/v1/explain", json={"image": encoded, "target": -1}), "invalid_request")
    refusal(client.post("/v1/explain", json={"image": encoded, "method": "magic"}), "invalid_request")
    refusal(client.post("/v1/segment", json={"image": encoded, "method": "head",
                                             "model": "rvit_tiny_16.deit_retrofit"}), "method_unavailable")


def test_images_are_expected(client: TestClient, encoded: str, png) -> None:
    for body in ({}, {"image": None}, {"image": []}, {"image": [encoded, encoded]}, {"image": 3}, {"image": "*"}):
        refusal(client.post("/v1/classify", json=body), "invalid_request")
    refusal(client.post("/v1/classify", files={"image": png(), "other": png()}), "invalid_request")
    refusal(client.post("/v1/classify", files=[("image", png()), ("image", png())]), "invalid_request")
    refusal(client.post("/v1/correspond", json={"source": encoded}), "invalid_request")
    refusal(client.post("/v1/correspond", json={"source": encoded, "targets": [encoded] * 9}), "invalid_request")


def test_addresses(client: TestClient) -> None:
    refusal(client.get("/nowhere"), "not_found")
    refusal(client.get("/v1/classify"), "method_not_allowed")
    refusal(client.get("/explorer/samples/../../etc/passwd"), "not_found")
    refusal(client.get("/explorer/samples/nobody"), "not_found")
    refusal(client.get("/explorer/pictures/nobody/image.png"), "not_found")
    assert client.get("/explorer/jobs/nobody").json() == {"done": 0, "total": 0}  # or not begun yet
    for path in ("/page/../app.py", "/page/%2e%2e/app.py", "/page//etc/passwd"):
        refusal(client.get(path), "not_found")


def test_other_sites(client: TestClient, encoded: str) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
        refusal(client.post("/v1/classify", json={"image": encoded}, headers=headers), "forbidden")
    own = client.post("/v1/classify", json={"image": encoded}, headers={"Origin": "http://localhost"})
    assert own.status_code == 200
    assert not [name for name in own.headers if name.startswith("access-control")]
    preflight = client.options("/v1/classify", headers={"Origin": "http://localhost",
                                                        "Access-Control-Request-Method": "POST"})
    refusal(preflight, "method_not_allowed")


def test_security_headers(client: TestClient) -> None:
    for path in ("/health", "/nowhere", "/explorer/samples", "/openapi.json"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_token(serve, encoded: str) -> None:
    client = serve(host="0.0.0.0", token="correct-horse")
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic correct-horse"},
                    {"Authorization": "Bearer"}, {"Authorization": "Bearer \xe9"}):
        response = client.post("/v1/classify", json={"image": encoded}, headers={
            name: value.encode("latin-1") for name, value in headers.items()})
        refusal(response, "unauthorized")
        assert response.headers["www-authenticate"] == "Bearer"
    for path in ("/metrics", "/v1/models", "/explorer/samples", "/explorer/pictures/a/image.png"):
        refusal(client.get(path), "unauthorized")
    for path in ("/health", "/ready", "/openapi.json", "/explorer/about"):
        assert client.get(path).status_code in (200, 503)
    answer = client.post("/v1/classify", json={"image": encoded}, headers={"Authorization": "Bearer correct-horse",
                                                                           "Host": "any.example"})
    assert answer.status_code == 200
    assert client.get("/openapi.json").json()["security"] == [{"token": []}]


def test_other_machines_need_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="--token"):
        ServeOptions(host="0.0.0.0")
    with pytest.raises(ValueError, match="8 printable"):
        ServeOptions(token="short")
    monkeypatch.setenv("SPIT_TOKEN", "from-the-environment")
    assert ServeOptions(host="::").token == "from-the-environment"
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        assert ServeOptions(host=host).local


def test_a_fault_says_nothing(serve, encoded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = serve()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"in {ROOT}")

    monkeypatch.setattr("spit.serve.api.about", fail)
    refusal(client.post("/v1/classify", json={"image": encoded}), "internal_error")
    monkeypatch.undo()
    assert client.post("/v1/classify", json={"image": encoded}).status_code == 200


def test_odd_images(client: TestClient) -> None:
    for mode, size in (("1", (1, 1)), ("LA", (1, 90)), ("P", (90, 1)), ("I;16", (40, 40)), ("CMYK", (33, 47))):
        file = io.BytesIO()
        Image.new(mode, size).save(file, "TIFF" if mode in ("CMYK", "I;16") else "PNG")
        for route in ("tokenize", "classify", "explain", "segment", "embed"):
            response = client.post(f"/v1/{route}", files={"image": file.getvalue()})
            assert response.status_code == 200, (mode, route, response.text)
            json.loads(response.text)
