"""Workers on Ray: a pool of actors with a predictor each.

Ray Data moves the numbers of blocks and what became of them, and retries the block of an actor that died. Images are
read, decoded and answered inside one actor and never enter Ray's object store, so that nothing spills.
"""

import logging
import os
import random
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from spit.batch.options import Cluster
from spit.batch.worker import Done, Job, Worker
from spit.devices import choose_device
from spit.environment import environment
from spit.errors import MissingExtra, SpitError
from spit.interruption import on_signals

PATIENCE = 10  # seconds for a cluster to answer
STORE = 2**27  # bytes of the object store of a local Ray, which holds numbers only


@dataclass(frozen=True)
class Place:
    """Where the work is done."""

    workers: int
    device: str
    decoders: int
    cpus: float  # of each worker
    gpus: float


@contextmanager
def open_place(cluster: Cluster, device: str) -> Iterator[Place]:
    """This process, or a Ray that is started here or connected to; it is left at the end.

    Raises:
        MissingExtra: workers without Ray.
        ValueError: more workers or another device than the cluster has.
    """
    if cluster.workers == 0:
        if cluster.address is not None:
            raise ValueError("expected workers for --address, got 0; leave --workers out")
        place = choose_device(device)
        yield Place(0, place, cluster.decoders or _decoders(place, os.cpu_count() or 1, 1), 0, 0)
        return
    quiet = {"RAY_BACKEND_LOG_LEVEL": "fatal"} if cluster.address is None else {}  # its lines would stand beside ours
    with environment(RAY_USAGE_STATS_ENABLED="0", **quiet):
        yield from _open_ray(cluster, device)


def _open_ray(cluster: Cluster, device: str) -> Iterator[Place]:
    local, ray, drawn = cluster.address is None, _ray(), random.getstate()
    # The address "local" starts a Ray; none would join one that another user of this machine has started.
    own: dict[str, Any] = {"num_cpus": max(cluster.workers or 0, os.cpu_count() or 1), "object_store_memory": STORE,
                           "include_dashboard": False} if local else {}
    try:
        if not local:
            _knock(str(cluster.address))
        with _own_sigterm(), _silent_start() if local else nullcontext():
            ray.init(address="local" if local else cluster.address, log_to_driver=False,
                     logging_level=logging.ERROR, **own)
    except (OSError, RuntimeError, ValueError) as error:
        raise SpitError(f"{cluster.address or 'ray'}: expected a Ray cluster that answers ({error})") from error
    try:
        yield _place(cluster, device, ray.cluster_resources())
    finally:
        ray.shutdown()
        random.setstate(drawn)


def run_on_ray(job: Job, place: Place, blocks: Sequence[int]) -> Iterator[Done]:
    """Do blocks on Ray, and tell of each when it is finished.

    Ray Data starts a worker that died anew and repeats its block, as often as that takes; see
    :class:`~spit.batch.attempts.Attempts` for images that end their workers.

    Raises:
        SpitError: a worker could not write, or failed in another way that is no image's.
    """
    ray = _ray()
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    numbers = ray.data.from_items([{"block": block} for block in blocks], override_num_blocks=len(blocks))
    answers = numbers.map_batches(
        _Actor, fn_constructor_args=(job,), batch_size=1, num_cpus=place.cpus, num_gpus=place.gpus or None,
        compute=ray.data.ActorPoolStrategy(size=min(place.workers, len(blocks)), max_tasks_in_flight_per_actor=2))
    try:
        for answer in answers.iter_rows():
            if answer["error"]:
                raise SpitError(f"block {answer['block']}: {answer['error']}; the same command continues")
            yield Done(answer["block"], answer["rows"], answer["rejects"])
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).split())[:300]
        raise SpitError(f"Ray ended the run ({reason}); the same command continues") from error


class _Actor:
    """A worker as Ray Data calls it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.worker: Worker | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        [block] = batch["block"].tolist()
        try:
            self.worker = self.worker or Worker(self.job)  # here, so that an error is an answer too
            done, error = self.worker(block), ""
        except Exception as problem:  # told to the driver, which ends the run with it
            done, error = Done(block, 0, 0), f"{type(problem).__name__}: {' '.join(str(problem).split())}"
        return {name: [value] for name, value in {**done._asdict(), "error": error}.items()}


def _place(cluster: Cluster, device: str, resources: dict[str, float]) -> Place:
    cpus, gpus = int(resources.get("CPU", 0)), int(resources.get("GPU", 0))
    kind = ("cuda" if gpus else "cpu") if device == "auto" else device
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"expected --device cpu, cuda or auto with workers, got {device!r}; Ray gives each worker its "
                         "GPU")
    most = gpus if kind == "cuda" else cpus
    workers = cluster.workers or most
    if not 1 <= workers <= most:
        raise ValueError(f"expected 1 to {most} workers on {kind}, as this cluster has, got {workers}")
    decoders = cluster.decoders or _decoders(kind, cpus, gpus)
    return Place(workers, kind, decoders, min(decoders, cpus / workers) if kind == "cuda" else 1, float(kind == "cuda"))


def _decoders(device: str, cpus: int, gpus: int) -> int:
    """Threads of a worker: a GPU's share of the CPUs; one beside a model that runs on a CPU itself."""
    return max(1, cpus // gpus) if device.startswith("cuda") else 1


def _knock(address: str) -> None:
    """Raise OSError if nobody listens at an address; Ray would end this process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()


@contextmanager
def _own_sigterm() -> Iterator[None]:
    """Keep our answer to SIGTERM, in whose place Ray exits, its C++ with a traceback."""
    try:
        with on_signals(signal.getsignal(signal.SIGTERM), signal.SIGTERM):
            yield
    except SystemExit:  # Ray's answer, while it starts
        signal.raise_signal(signal.SIGTERM)
        raise


@contextmanager
def _silent_start() -> Iterator[None]:
    """Keep a line that Ray's C++ prints off stderr; what goes wrong is raised."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise MissingExtra("ray[data]", "cluster", "spit batch with workers (--workers 0 does without)") from error
    return ray
