"""The service under load: statuses, latency, memory, and throughput against requests one by one.

    python benchmarks/serve.py [--clients 50] [--seconds 60] [--route segment] [--device cpu]
    python benchmarks/serve.py --cases 5000        # schemathesis against the OpenAPI document, needs that package

Starts ``spit serve`` in a process of its own. Clients ask again as soon as they are answered, and after Retry-After if
the service is busy. Images are random views of scikit-image's photos at 224 × 224 as JPEG, some of them broken if
``--broken`` says how many in a hundred; their 422 is counted apart.
"""

import asyncio
import base64
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
from PIL import Image
from provenance import arguments, launch, print_provenance

from spit.bench.photos import photo_batch, sample_photos

VIEWS = 64
ROUTES = 6  # that take images; the others have few cases
HOOKS = "SCHEMATHESIS_HOOKS"  # names the module that schemathesis imports: this one


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--clients", type=int, default=50, help="concurrent clients")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the load")
    parser.add_argument("--alone", type=float, default=20.0, help="seconds of one client before the load")
    parser.add_argument("--route", default="classify", help="what is asked")
    parser.add_argument("--side", type=int, default=224, help="of the images")
    parser.add_argument("--queue", type=int, default=64, help="requests that the service takes at a time")
    parser.add_argument("--batch", type=int, default=8, help="most images in a pass")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--broken", type=int, default=0, help="broken images in a hundred")
    parser.add_argument("--cases", type=int, default=0, help="requests of schemathesis instead of the load")
    parser.add_argument("--phases", default="examples,coverage,fuzzing", help="of schemathesis")
    args = parser.parse_args()
    limits = ["--queue", str(args.queue), "--batch", str(args.batch), "--device", args.device]
    if args.cases:
        with service(*limits, "--seconds", "60") as (address, _):
            fuzz(address, args.cases, args.phases)
        return
    print_provenance("scikit-image's photos", seed=0)
    images = [jpeg(view) for view in photo_batch(sample_photos(), VIEWS, args.side, args.side).movedim(1, -1).numpy()]
    for index in range(0, VIEWS * args.broken // 100):
        images[index * 7 % VIEWS] = b"broken"
    with service(*limits) as (address, process):
        url = f"{address}/v1/{args.route}"
        asyncio.run(load(url, images, 1, 3.0, process))
        print(f"{'clients':>8s} {'answers/s':>10s} {'p50 ms':>8s} {'p95 ms':>8s} {'MB before':>10s} {'MB after':>9s}  "
              "statuses")
        single = asyncio.run(load(url, images, 1, args.alone, process))
        many = asyncio.run(load(url, images, args.clients, args.seconds, process))
        asyncio.run(load(url, images, args.clients, args.seconds / 4, process))  # memory is flat
        figures = httpx.get(f"{address}/metrics").text
    jobs, batches = (float(_figure(figures, f"spit_batch_jobs_{kind}")) for kind in ("sum", "count"))
    print(f"throughput of {args.clients} clients over one by one: {many / single:.2f}; images a pass: "
          f"{jobs / batches:.2f}")


async def load(url: str, images: list[bytes], clients: int, seconds: float, process: int) -> float:
    """Ask for some seconds; prints a row and returns the answers in a second."""
    statuses: Counter[str] = Counter()
    times: list[float] = []
    before, started = memory(process), time.perf_counter()

    async def ask(client: httpx.AsyncClient, number: int) -> None:
        turn = number
        while time.perf_counter() - started < seconds:
            data, sent = images[turn % len(images)], time.perf_counter()
            turn += clients
            try:
                answer = await client.post(url, files={"image": ("a.jpg", data, "image/jpeg")})
            except httpx.HTTPError as error:
                statuses[type(error).__name__] += 1
                continue
            statuses[f"{answer.status_code}{' broken' if data == b'broken' else ''}"] += 1
            if answer.status_code == 200:
                times.append(time.perf_counter() - sent)
            elif answer.status_code == 503:
                await asyncio.sleep(float(answer.headers["Retry-After"]))

    async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=clients)) as client:
        await asyncio.gather(*(ask(client, number) for number in range(clients)))
    took = time.perf_counter() - started
    p50, p95 = (1000 * np.percentile(times, share) for share in (50, 95))
    rate = len(times) / took
    said = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
    print(f"{clients:8d} {rate:10.1f} {p50:8.0f} {p95:8.0f} {before:10.0f} {memory(process):9.0f}  {said}", flush=True)
    return rate


def fuzz(address: str, cases: int, phases: str) -> None:
    """Schemathesis with so many cases in all; raises if it finds an answer of 500."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json", "--url", address,
               "--phases", phases, "--max-examples", str(-(-cases // ROUTES)), "--workers", "2",
               "--seed", "0", "--continue-on-failure", "--request-timeout", "60",
               "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,"
                           "response_schema_conformance", "--mode", "all"]
    here = str(Path(__file__).parent)
    ended = subprocess.run(command, check=False, env={
        **os.environ, "NO_COLOR": "1", HOOKS: "serve", "PYTHONPATH": os.pathsep.join([here, *sys.path])})
    print(_statuses(httpx.get(f"{address}/metrics").text))
    raise SystemExit(ended.returncode)


@contextmanager
def service(*arguments: str) -> Iterator[tuple[str, int]]:
    """``spit serve`` on a free port: its address and process id."""
    process = subprocess.Popen([sys.executable, "-m", "spit.cli", "serve", "--port", "0", *arguments],
                               stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        found = re.search(r"http://[^/]+", process.stdout.readline())
        if found is None:
            raise OSError("spit serve did not start")
        while httpx.get(f"{found[0]}/ready", timeout=120).status_code != 200:
            time.sleep(0.2)
        yield found[0], process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(300)


def memory(process: int) -> float:
    """Resident memory of a process in MB; 0 where /proc is not there."""
    status = Path(f"/proc/{process}/status")
    found = re.search(r"VmRSS:\s+(\d+)", status.read_text()) if status.exists() else None
    return int(found[1]) / 1024 if found else 0.0


def jpeg(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return file.getvalue()


def _figure(text: str, name: str) -> str:
    return re.search(rf"^{name} (\S+)", text, re.MULTILINE)[1]


def _statuses(text: str) -> str:
    found: Counter[str] = Counter()
    for status, count in re.findall(r'^spit_requests_total\{.*status="(\d+)"\} (\S+)', text, re.MULTILINE):
        found[status] += int(float(count))
    return f"answers by status: {dict(sorted(found.items()))}, {found.total()} in all"


def register_images() -> None:
    """Have schemathesis send images, whole, damaged or neither, where it would send random bytes alone."""
    import schemathesis
    from hypothesis import strategies as st
    from schemathesis.transport.serialization import Binary

    random = np.random.default_rng(0)
    sides = [(1, 1), (16, 16), (33, 20), (64, 48), (1, 70), (90, 2)]
    whole = [jpeg(random.integers(0, 256, (*side, 3), np.uint8)) for side in sides]
    images = st.one_of(st.sampled_from(whole), st.sampled_from([data[:-40] for data in whole]), st.binary(max_size=200))
    schemathesis.openapi.format("binary", images.map(Binary))
    schemathesis.openapi.format("byte", images.map(lambda data: base64.b64encode(data).decode()))


if __name__ == "__main__":
    launch(main)
elif os.environ.get(HOOKS) == __name__:
    register_images()
