"""``spit serve`` as users start it: a process of its own, many clients, and a graceful end."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
Start = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """``start("--queue", "4")``: the process and its address, once it is ready."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "spit.cli", "serve", "--port", "0", "--device", "cpu", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment})
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, line + (process.stderr.read() if process.stderr else "")
        for _ in range(1200):
            if httpx.get(f"{found[0]}/ready", timeout=120).status_code == 200:
                return process, found[0]
            time.sleep(0.1)
        raise AssertionError("not ready in 120 s")

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_many_clients_and_a_graceful_end(start: Start, png: Callable[..., bytes]) -> None:
    process, address = start("--queue", "12", "--time-limit", "300")
    images = [png(60 + 20 * (index % 3), 70, index) for index in range(24)]
    images[5] = b"broken"
    images[11] = images[11][:1500]

    def ask(index: int) -> httpx.Response:
        with httpx.Client(timeout=60) as client:
            while True:
                response = client.post(f"{address}/v1/segment", files={"image": images[index]})
                if response.status_code != 503:
                    return response
                assert int(response.headers["Retry-After"]) >= 1
                time.sleep(0.3)

    with ThreadPoolExecutor(len(images)) as pool:
        answers = list(pool.map(ask, range(len(images))))
    assert [index for index, one in enumerate(answers) if one.status_code != 200] == [5, 11]
    for index in (0, 4, 23):  # the same alone as among others
        assert answers[index].json() == ask(index).json()
    text = httpx.get(f"{address}/metrics").text
    jobs, batches = (float(re.search(rf"^spit_batch_jobs_{kind} (\S+)", text, re.M)[1]) for kind in ("sum", "count"))
    assert jobs > batches  # some ran together

    with ThreadPoolExecutor(8) as pool:  # asked before the end, answered after it
        asked = [pool.submit(httpx.post, f"{address}/v1/segment", files={"image": png(400, 400, index)}, timeout=60)
                 for index in range(8)]
        for _ in range(100):
            taken = re.search(r"^spit_requests_taken (\S+)", httpx.get(f"{address}/metrics").text, re.M)
            if taken and float(taken[1]) == 8:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert [one.result().status_code for one in asked] == [200] * 8
    assert process.wait(30) in (0, -signal.SIGTERM)
    _, errors = process.communicate()
    assert "Traceback" not in errors
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/health")


def test_slow_clients(start: Start, png: Callable[..., bytes]) -> None:
    _, address = start("--time-limit", "1.5", "--queue", "2")
    host, port = address.removeprefix("http://").split(":")
    head = (f"POST /v1/classify HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
            "Content-Length: 100000\r\n\r\n{").encode()
    slow = [socket.create_connection((host, int(port))) for _ in range(2)]
    for one in slow:
        one.sendall(head)
    for one in slow:
        one.settimeout(20)
        answer = one.recv(65536)
        assert answer.startswith(b"HTTP/1.1 408")
        one.close()
    answer = httpx.post(f"{address}/v1/classify", files={"image": png()}, timeout=30)
    assert answer.status_code in (200, 504)  # on a busy machine; they hold the queue no more, which would be 503


def test_a_refusal_reaches_a_client_in_mid_upload(start: Start) -> None:
    _, address = start("--max-megabytes", "1")
    answer = httpx.post(f"{address}/v1/classify", files={"image": b"\0" * 3_000_000}, timeout=30)
    assert answer.status_code == 413


def test_clients(start: Start, png: Callable[..., bytes], tmp_path: Path) -> None:
    _, address = start("--token", "correct-horse")
    (tmp_path / "a.png").write_bytes(png(120, 90))
    clients = [[sys.executable, "-W", "error", str(EXAMPLES / "client.py")]]
    if shutil.which("node"):
        clients.append(["node", str(EXAMPLES / "client.mjs")])
    said = [json.loads(subprocess.run([*client, "a.png", address], cwd=tmp_path, check=True, capture_output=True,
                                      text=True, env={**os.environ, "SPIT_TOKEN": "correct-horse"}).stdout)
            for client in clients]
    assert {"classes", "mask"} <= set(said[0])
    assert all(one == said[0] for one in said)


def test_the_address_as_json() -> None:
    process = subprocess.Popen([sys.executable, "-m", "spit.cli", "serve", "--port", "0", "--device", "cpu", "--json"],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    document = process.stdout.readline()
    try:
        assert httpx.get(json.loads(document)["address"] + "health", timeout=60).status_code == 200
    finally:
        process.terminate()
        process.communicate(timeout=120)


@pytest.mark.parametrize(("arguments", "words"), [
    (["--host", "0.0.0.0"], "--token"), (["--token", "short"], "8 printable"), (["--model", "nowhere"], "nowhere"),
    (["--host", "192.0.2.1", "--token", "correct-horse"], "address of this machine")])
def test_one_line_on_what_is_wrong(arguments: list[str], words: str) -> None:
    ended = subprocess.run([sys.executable, "-m", "spit.cli", "serve", "--port", "0", "--device", "cpu", *arguments],
                           capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
