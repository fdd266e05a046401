"""A corpus on Ray: exactly once through kills, flat memory, and throughput beside one process.

    python benchmarks/batch.py kills --images 5000
    python benchmarks/batch.py memory --images 20000
    python benchmarks/batch.py throughput --images 600 --size 224

The images are made by this script, small ones, every tenth of them broken in ``kills``. Each run is the command
``spit batch`` in a process of its own.

- ``kills``: one worker is ended by ``kill -9`` after a quarter of the blocks, the whole run after a half. The same
  command continues; its rows are compared with those of one process.
- ``memory``: private memory of the driver and of each worker as blocks are finished.
- ``throughput``: images per second between the first block and the last, with workers on one thread each and in one
  process on one thread; the share of the time that decoding takes; and processor seconds an image of all processes,
  Ray's own among them, which a busy machine changes little.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
from PIL import Image
from provenance import arguments, launch, print_provenance

from spit.batch.arrow import pq
from spit.batch.run import read_rows

SEED = 0
TIMES = ["decode_seconds", "seconds"]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("what", choices=("kills", "memory", "throughput"))
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--side", type=int, default=96, help="of the images, which are JPEGs")
    parser.add_argument("--size", type=int, default=64, help="that the model sees")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--op", default="embed")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    print_provenance("made by this script", SEED)
    with tempfile.TemporaryDirectory() as folder:
        make_images(Path(folder) / "in", args.images, args.side, broken=args.what == "kills")
        {"kills": kills, "memory": memory, "throughput": throughput}[args.what](Path(folder), args)


def make_images(folder: Path, count: int, side: int, broken: bool) -> None:
    """Smooth, coloured JPEGs with a little noise; every tenth is cut short if ``broken``."""
    folder.mkdir()
    random = np.random.default_rng(SEED)
    y, x = np.mgrid[:side, :side]
    noise = random.normal(0, 6, (side, side, 3))
    for index in range(count):
        waves = np.stack([128 + 90 * np.sin((x * (k + 1) + y * 2 + 17 * index) / 29) for k in range(3)], axis=2)
        file = folder / f"{index:06d}.jpg"
        Image.fromarray((waves + noise).clip(0, 255).astype(np.uint8)).save(file)
        if broken and index % 10 == 3:
            file.write_bytes(file.read_bytes()[:200])


def start(folder: Path, args: Namespace, output: str, workers: int) -> subprocess.Popen[str]:
    """The command, running."""
    command = [sys.executable, "-m", "spit.cli", "batch", "--op", args.op, "--input", str(folder / "in"), "--output",
               str(folder / output), "--size", str(args.size), "--workers", str(workers), "--device", args.device,
               "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": "1"})


def finish(run: subprocess.Popen[str]) -> dict[str, float]:
    out = run.communicate()[0]
    if run.returncode:
        raise SystemExit(f"spit batch ended with exit code {run.returncode}")
    found: dict[str, float] = json.loads(out)
    return found


def blocks(folder: Path, output: str) -> list[Path]:
    return sorted((folder / output / "rows").glob("0*.parquet"), key=lambda path: path.stat().st_mtime_ns)


def actors(run: subprocess.Popen[str]) -> Iterator[psutil.Process]:
    with suppress(psutil.Error):
        for process in psutil.Process(run.pid).children(recursive=True):
            with suppress(psutil.Error):
                if "MapWorker" in " ".join(process.cmdline()):
                    yield process


def kills(folder: Path, args: Namespace) -> None:
    run = start(folder, args, "out", args.workers)
    total = None
    for share, what in ((0.25, "one worker"), (0.5, "the whole run")):
        while total is None or len(blocks(folder, "out")) < share * total:
            if run.poll() is not None:
                raise SystemExit(f"the run ended before {what} was killed; give more --images")
            with suppress(OSError):
                total = pq.ParquetFile(folder / "out/input.parquet").num_row_groups
            time.sleep(0.02)
        victim = next(actors(run)) if what == "one worker" else run
        victim.kill()
        done = len(blocks(folder, "out"))
        print(f"killed   {what}, process {victim.pid}, after {done} of {total} blocks", flush=True)
    run.wait()
    found = finish(start(folder, args, "out", args.workers))
    alone = finish(start(folder, args, "alone", 0))
    rows, rejects = (read_rows(folder / "out", rejects=rejected) for rejected in (False, True))
    keys = rows["key"].to_pylist() + rejects["key"].to_pylist()
    equal = (rows.drop(TIMES).equals(read_rows(folder / "alone").drop(TIMES)),
             rejects.equals(read_rows(folder / "alone", rejects=True)))
    print(f"rows     {rows.num_rows:,}, of one process {alone['rows']:,}; {found['earlier']:,} images before the kill")
    print(f"rejects  {rejects.num_rows:,}, of one process {alone['rejects']:,}")
    print(f"twice    {len(keys) - len(set(keys)):,}; missing {args.images - len(set(keys)):,}")
    print(f"equal    rows {equal[0]}, rejects {equal[1]} (but for the times)")


def memory(folder: Path, args: Namespace) -> None:
    run = start(folder, args, "out", args.workers)
    told = 0
    print("images   MiB of the driver and of each worker")
    while run.poll() is None:
        with suppress(OSError, psutil.Error):
            done = len(blocks(folder, "out")) / pq.ParquetFile(folder / "out/input.parquet").num_row_groups
            if done >= told / 10:
                sizes = [process.memory_full_info().uss / 2**20 for process in (psutil.Process(run.pid), *actors(run))]
                print(f"{done * args.images:6.0f}   {' '.join(f'{size:6.0f}' for size in sizes)}", flush=True)
                told = int(done * 10) + 1
        time.sleep(0.2)
    found = finish(run)
    print(f"{found['rows']:,.0f} rows in {found['seconds']:.0f} s")


def processor_seconds(run: subprocess.Popen[str]) -> float:
    """What a run and all processes that it started have used; it is awaited."""
    used: dict[int, float] = {}
    while run.poll() is None:
        with suppress(psutil.Error):
            for process in (psutil.Process(run.pid), *psutil.Process(run.pid).children(recursive=True)):
                with suppress(psutil.Error):
                    used[process.pid] = sum(process.cpu_times()[:2])
        time.sleep(0.2)
    return sum(used.values())


def throughput(folder: Path, args: Namespace) -> None:
    speeds = {}
    for workers in (0, args.workers):
        run = start(folder, args, f"out{workers}", workers)
        processor = processor_seconds(run)
        found = finish(run)
        made = blocks(folder, f"out{workers}")
        first, last = (path.stat().st_mtime for path in (made[0], made[-1]))
        images = sum(pq.read_metadata(path).num_rows for path in made[1:])
        speeds[workers] = images / (last - first)
        times = read_rows(folder / f"out{workers}").select(TIMES).to_pydict()
        decoding = sum(times["decode_seconds"]) / (sum(times["decode_seconds"]) + sum(times["seconds"]))
        print(f"{workers or 'no':>3} workers: {speeds[workers]:8.1f} images/s between the first block and the last, "
              f"{found['images'] / found['seconds']:.1f} with start; decoding takes {decoding:.0%}; "
              f"{processor / args.images:.3f} processor seconds an image, start included", flush=True)
    print(f"load     {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"ratio    {speeds[args.workers] / speeds[0]:.2f} (bar: 1.7 on 2 cores)")


if __name__ == "__main__":
    launch(main)
