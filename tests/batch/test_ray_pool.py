"""Runs on a real local Ray: workers and the whole run killed in the middle, and the rows of one process."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from batch.conftest import Corpus as Make
from spit.batch.options import Cluster, Work
from spit.batch.ray_pool import Place, _own_sigterm, _place, open_place
from spit.batch.run import Corpus, read_rows, run_batch
from spit.errors import SpitError
from spit.interruption import on_signals

COUNT, REJECTS, BLOCK = 40, 4, 2


def rows(output: Path) -> list[Path]:
    return list((output / "rows").glob("0*.parquet"))


def wait_for(holds: Callable[[], bool], run: subprocess.Popen[str]) -> None:
    limit = time.monotonic() + 120
    while not holds():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < limit
        time.sleep(0.02)


def actors(run: subprocess.Popen[str]) -> list[psutil.Process]:
    """The worker processes of a run."""
    found = []
    for process in psutil.Process(run.pid).children(recursive=True):
        try:
            if "MapWorker" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:  # it has just ended
            continue
    return found


def test_kills_and_resumes(corpus: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.chdir(tmp_path)
    folder, output = corpus(COUNT), tmp_path / "out"
    command = [sys.executable, "-m", "spit.cli", "batch", "--op", "explain", "--input", folder.name, "--output",
               output.name, "--size", "112", "--block-size", str(BLOCK), "--workers", "2", "--device", "cpu"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: bool(rows(output)), run)
    assert actors(run), "the workers of Ray Data have another name"
    actors(run)[0].kill()
    before = len(rows(output))
    wait_for(lambda: len(rows(output)) >= before + 4, run)  # it goes on
    workers = actors(run)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert len(rows(output)) < COUNT // BLOCK, "it was killed in the middle"
    psutil.wait_procs(workers, timeout=60)  # they end with their driver
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert f"{COUNT} images: {COUNT - REJECTS} rows and {REJECTS} rejects" in ended.stdout
    assert "Traceback" not in ended.stderr
    run_batch(Corpus((str(folder),), Work("explain"), size=112), tmp_path / "alone", Cluster(workers=0), "cpu")
    times = ["decode_seconds", "seconds"]
    assert read_rows(output).drop(times).equals(read_rows(tmp_path / "alone").drop(times))
    assert read_rows(output, True).equals(read_rows(tmp_path / "alone", True))
    assert not [path.name for path in output.rglob(".*")]


def test_sigterm_is_one_line(corpus: Make, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    output = tmp_path / "out"
    command = [sys.executable, "-m", "spit.cli", "batch", "--op", "explain", "--input", str(corpus(COUNT)), "--output",
               str(output), "--size", "112", "--block-size", str(BLOCK), "--workers", "1", "--device", "cpu"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: bool(rows(output)), run)
    run.terminate()
    told = run.communicate(timeout=120)[1]
    assert (run.returncode, told.splitlines()[-1]) == (
        130, "spit: stopped; the same command continues with the blocks that are left")
    assert "SIGTERM received" not in told


def test_sigterm_while_ray_starts() -> None:
    """Ray installs a handler of its own, which exits."""

    def start() -> None:
        with _own_sigterm():
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(15))
            signal.raise_signal(signal.SIGTERM)

    with on_signals(signal.default_int_handler, signal.SIGTERM):
        with pytest.raises(KeyboardInterrupt):
            start()
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler


def test_a_worker_that_cannot_write_ends_the_run(corpus: Make, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    output = tmp_path / "out"
    command = [sys.executable, "-m", "spit.cli", "batch", "--op", "embed", "--input", str(corpus(8)), "--output",
               str(output), "--workers", "1", "--device", "cpu"]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for((output / "run.json").exists, run)
    (output / "rejects").rmdir()  # before its first block is written
    (output / "rejects").write_text("a file")
    told = run.communicate(timeout=120)[1]
    assert run.returncode == 2
    assert "block 0: FileExistsError" in told.splitlines()[-1]
    assert "the same command continues" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nowhere.invalid:6379"])
def test_an_address_where_nobody_answers(corpus: Make, tmp_path: Path, address: str) -> None:
    pytest.importorskip("ray")
    corpus_ = Corpus((str(corpus(8)),), Work("embed"))
    with pytest.raises(SpitError, match="expected a Ray cluster that answers"):
        run_batch(corpus_, tmp_path / "out", Cluster(workers=1, address=address), "cpu")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("cluster", "device", "expected"), [
    (Cluster(), "auto", Place(16, "cpu", 1, 1, 0.0)),
    (Cluster(workers=2, decoders=3), "cpu", Place(2, "cpu", 3, 1, 0.0))])
def test_places_without_a_gpu(cluster: Cluster, device: str, expected: Place) -> None:
    assert _place(cluster, device, {"CPU": 16.0}) == expected


def test_places_with_gpus() -> None:
    assert _place(Cluster(), "auto", {"CPU": 16.0, "GPU": 2.0}) == Place(2, "cuda", 8, 8, 1.0)
    assert _place(Cluster(workers=1), "cuda", {"CPU": 16.0, "GPU": 2.0}) == Place(1, "cuda", 8, 8, 1.0)
    with pytest.raises(ValueError, match="expected 1 to 2 workers on cuda, as this cluster has, got 3"):
        _place(Cluster(workers=3), "cuda", {"CPU": 16.0, "GPU": 2.0})
    with pytest.raises(ValueError, match="expected 1 to 0 workers on cuda"):
        _place(Cluster(), "cuda", {"CPU": 16.0})
    with pytest.raises(ValueError, match="expected --device cpu, cuda or auto with workers, got 'cuda:1'"):
        _place(Cluster(), "cuda:1", {"CPU": 16.0, "GPU": 2.0})


@pytest.mark.parametrize(("device", "cluster", "expected"), [
    ("cuda", Cluster(workers=0), 16), ("cuda:1", Cluster(workers=0), 16), ("cuda", Cluster(workers=0, decoders=3), 3),
    ("cpu", Cluster(workers=0), 1), ("cpu", Cluster(workers=0, decoders=2), 2)])
def test_one_process_decodes_on_all_cores_beside_a_gpu(monkeypatch: pytest.MonkeyPatch, device: str, cluster: Cluster,
                                                       expected: int) -> None:
    monkeypatch.setattr("spit.batch.ray_pool.os.cpu_count", lambda: 16)
    monkeypatch.setattr("spit.batch.ray_pool.choose_device", lambda name: name)  # there may be no GPU here
    with open_place(cluster, device) as place:
        assert place == Place(0, device, expected, 0, 0)
