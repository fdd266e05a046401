"""The service under load: statuses, latency, memory over time, and throughput against requests one by one.

    python benchmarks/serve.py [--clients 50] [--seconds 60] [--route segment] [--device cuda --batch 32]
    python benchmarks/serve.py --cases 5000        # schemathesis against the OpenAPI document, needs that package

Starts ``spit serve`` in a process of its own. Clients ask again as soon as they are answered, and after Retry-After if
the service is busy. All rows use the same transport: one client, as many as ``--clients`` says, and as many again at a
service that takes one image a pass. Images are random views of scikit-image's photos at 224 × 224 as JPEG, some of them
broken if ``--broken`` says how many in a hundred; their 422 is counted apart.
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
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np
from PIL import Image
from provenance import arguments, launch, print_provenance

from spit.bench.photos import photo_batch, sample_photos
from spit.data.folders import image_paths

VIEWS = 64
EVERY = 10.0  # seconds between two readings of the memory
ROUTES = 6  # that take images; the others have few cases
HOOKS = "SCHEMATHESIS_HOOKS"  # names the module that schemathesis imports: this one


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--clients", type=int, default=50, help="concurrent clients")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the load")
    parser.add_argument("--alone", type=float, default=20.0, help="seconds of one client, and of one image a pass")
    parser.add_argument("--route", default="classify", help="what is asked")
    parser.add_argument("--images", help="a folder of photos; by default scikit-image's samples")
    parser.add_argument("--side", type=int, default=224, help="of the images")
    parser.add_argument("--queue", type=int, default=64, help="requests that the service takes at a time")
    parser.add_argument("--batch", type=int, default=8, help="most images in a pass")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--broken", type=int, default=0, help="broken images in a hundred")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 1) // 4), help="that clients run in")
    parser.add_argument("--cases", type=int, default=0, help="requests of schemathesis instead of the load")
    parser.add_argument("--phases", default="examples,coverage,fuzzing", help="of schemathesis")
    args = parser.parse_args()
    limits = ["--queue", str(args.queue), "--device", args.device]
    if args.cases:
        with service(*limits, "--batch", str(args.batch), "--time-limit", "60") as (address, _):
            fuzz(address, args.cases, args.phases)
        return
    photos = image_paths(args.images) if args.images else sample_photos()
    print_provenance(args.images or "scikit-image's photos", seed=0)
    images = [jpeg(view) for view in photo_batch(photos, VIEWS, args.side, args.side).movedim(1, -1).numpy()]
    for index in range(0, VIEWS * args.broken // 100):
        images[index * 7 % VIEWS] = b"broken"
    with Clients(images, args.processes) as clients:
        with service(*limits, "--batch", str(args.batch)) as (address, process):
            url = f"{address}/v1/{args.route}"
            clients.load(url, args.clients, 8.0)  # compiles what each size of a batch needs
            print(f"{'clients':>7s} {'a pass':>6s} {'answers/s':>9s} {'p50 ms':>7s} {'p95 ms':>7s}  statuses")
            single = report(clients.load(url, 1, args.alone), 1, args.batch)
            many = clients.load(url, args.clients, args.seconds, process)
            batched = report(many, args.clients, args.batch)
            figures = httpx.get(f"{address}/metrics").text
        with service(*limits, "--batch", "1") as (address, _):
            url = f"{address}/v1/{args.route}"
            clients.load(url, args.clients, 3.0)
            separate = report(clients.load(url, args.clients, args.alone), args.clients, 1)
    jobs, batches = (float(_figure(figures, f"spit_batch_jobs_{kind}")) for kind in ("sum", "count"))
    print(f"throughput of {args.clients} clients in batches: {batched / single:.2f} times that of one client, "
          f"{batched / separate:.2f} times that of one image a pass; images a pass: {jobs / batches:.2f}")
    print("MB every", f"{EVERY:.0f} s:", " ".join(f"{found:.0f}" for found in many.memory))


@dataclass
class Answers:
    """What some clients were answered."""

    statuses: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    seconds: float = 0.0
    memory: list[float] = field(default_factory=list)


class Clients:
    """Clients in processes of their own, so that they do not slow each other or the service down.

    Args:
        images: files that they send in turn.
        processes: that they are spread over.
    """

    def __init__(self, images: list[bytes], processes: int) -> None:
        self.images, self.processes = images, processes
        self._pool = ProcessPoolExecutor(processes, get_context("spawn"))

    def __enter__(self) -> "Clients":
        return self

    def __exit__(self, *exception: object) -> None:
        self._pool.shutdown()

    def load(self, url: str, clients: int, seconds: float, process: int = 0) -> Answers:
        """Ask for some seconds, and read the memory of a process meanwhile."""
        shares = [len(range(first, clients, self.processes)) for first in range(self.processes)]
        futures = [self._pool.submit(ask_all, url, self.images[first:] + self.images[:first], share, seconds)
                   for first, share in enumerate(shares) if share]
        together = Answers(memory=[memory(process)])
        while wait(futures, EVERY).not_done:
            together.memory.append(memory(process))
        for future in futures:
            own = future.result()
            together.statuses.update(own.statuses)
            together.times += own.times
            together.seconds = max(together.seconds, own.seconds)
        return together


def ask_all(url: str, images: list[bytes], clients: int, seconds: float) -> Answers:
    """The answers to some clients that ask at the same time."""
    return asyncio.run(_ask_all(url, images, clients, seconds))


async def _ask_all(url: str, images: list[bytes], clients: int, seconds: float) -> Answers:
    found, started = Answers(), time.perf_counter()

    async def ask(client: httpx.AsyncClient, number: int) -> None:
        turn = number
        while time.perf_counter() - started < seconds:
            data, sent = images[turn % len(images)], time.perf_counter()
            turn += clients
            try:
                answer = await client.post(url, files={"image": ("a.jpg", data, "image/jpeg")})
            except httpx.HTTPError as error:
                found.statuses[type(error).__name__] += 1
                continue
            found.statuses[f"{answer.status_code}{' broken' if data == b'broken' else ''}"] += 1
            if answer.status_code == 200:
                found.times.append(time.perf_counter() - sent)
            elif answer.status_code == 503:
                await asyncio.sleep(float(answer.headers["Retry-After"]))

    async with httpx.AsyncClient(timeout=120, limits=httpx.Limits(max_connections=clients)) as client:
        await asyncio.gather(*(ask(client, number) for number in range(clients)))
    found.seconds = time.perf_counter() - started
    return found


def report(answers: Answers, clients: int, batch: int) -> float:
    """Print a row; returns the answers in a second."""
    p50, p95 = (1000 * np.percentile(answers.times, share) for share in (50, 95))
    rate = len(answers.times) / answers.seconds
    said = ", ".join(f"{status}: {count}" for status, count in sorted(answers.statuses.items()))
    print(f"{clients:7d} {batch:6d} {rate:9.1f} {p50:7.0f} {p95:7.0f}  {said}", flush=True)
    return rate


def fuzz(address: str, cases: int, phases: str) -> None:
    """Schemathesis with so many cases in all; raises if it finds an answer of 500."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json", "--url", address,
               "--phases", phases, "--max-examples", str(-(-cases // ROUTES)), "--workers", "2",
               "--seed", "0", "--continue-on-failure", "--request-timeout", "60",
               "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,"
                           "response_schema_conformance", "--mode", "all"]
    here = str(Path(__file__).resolve().parent)
    with TemporaryDirectory() as folder:  # for its cache
        ended = subprocess.run(command, check=False, cwd=folder, env={
            **os.environ, "NO_COLOR": "1", HOOKS: "serve", "PYTHONPATH": os.pathsep.join(
                [here, *map(os.path.abspath, sys.path)])})
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


if os.environ.get(HOOKS) == __name__:
    register_images()
if __name__ == "__main__":
    launch(main)
