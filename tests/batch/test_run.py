"""Whole runs in one process: every image is a row or a reject, once, after any kill."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from batch.conftest import Corpus as Make
from spit.batch.options import Cluster, Work
from spit.batch.run import LOCK, Corpus, read_rows, run_batch
from spit.errors import SpitError
from spit.locks import locked

HERE = Cluster(workers=0, block_size=4)
TIMES = ["decode_seconds", "seconds"]
KILLER = """
import os, sys
from pathlib import Path
from spit.batch.options import Cluster, Work
from spit.batch.operations import Operation
from spit.batch.run import Corpus, run_batch

folder, model = sys.argv[1:]
decode = Operation.decode

def deadly(self, key, data):
    if key == "0005.png":
        os._exit(9)
    return decode(self, key, data)

Operation.decode = deadly
corpus = Corpus((folder + "/in",), Work("embed"), model, 32)
run_batch(corpus, Path(folder, "out"), Cluster(workers=0, block_size=4), "cpu")
"""


@pytest.fixture
def work(corpus: Make, tiny: Path) -> Corpus:
    return Corpus((str(corpus(30)),), Work("embed"), str(tiny), 32)


def names(output: Path, rejects: bool = False) -> list[str]:
    return list(read_rows(output, rejects)["key"].to_pylist())


def test_every_image_is_a_row_or_a_reject(work: Corpus, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    found = run_batch(work, tmp_path / "out", HERE, "cpu", lambda *step: told.append(step))
    assert (found.images, found.rows, found.rejects, found.earlier) == (30, 27, 3, 0)
    assert names(tmp_path / "out", rejects=True) == ["0003.png", "0013.png", "0023.png"]
    assert sorted(names(tmp_path / "out") + names(tmp_path / "out", True)) == sorted(
        path.name for path in (tmp_path / "in").iterdir())
    assert all("expected a whole PNG" in reason or "expected an image" in reason
               for reason in read_rows(tmp_path / "out", True)["error"].to_pylist())
    assert told[-1][0].endswith("images/s")
    assert told[-1][1:] == (30, 30)
    assert not [path.name for path in (tmp_path / "out").rglob(".*")]


def test_batches_blocks_and_threads_change_no_row(work: Corpus, tmp_path: Path) -> None:
    tables = []
    for number, cluster in enumerate([HERE, Cluster(workers=0, batch=1, block_size=30),
                                      Cluster(workers=0, batch=7, decoders=3)]):
        run_batch(work, tmp_path / str(number), cluster, "cpu")
        tables.append(read_rows(tmp_path / str(number)).drop(TIMES))
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


def test_a_second_run_has_nothing_to_do(work: Corpus, tmp_path: Path) -> None:
    run_batch(work, tmp_path / "out", HERE, "cpu")
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.parquet")}
    assert run_batch(work, tmp_path / "out", HERE, "cpu").earlier == 30
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.parquet")}
    (tmp_path / "out/rows/00002.parquet").unlink()
    assert run_batch(work, tmp_path / "out", HERE, "cpu").earlier == 26


def test_a_changed_image_is_another_run(work: Corpus, tmp_path: Path) -> None:
    run_batch(work, tmp_path / "out", HERE, "cpu")
    (tmp_path / "in/0007.png").write_bytes(b"changed")
    with pytest.raises(SpitError, match="holds another run: input was"):
        run_batch(work, tmp_path / "out", HERE, "cpu")


def test_one_run_at_a_time(work: Corpus, tmp_path: Path) -> None:
    with locked(tmp_path / "out" / LOCK), pytest.raises(SpitError, match="another spit batch is writing"):
        run_batch(work, tmp_path / "out", HERE, "cpu")


def test_a_killed_run_goes_on(corpus: Make, tmp_path: Path) -> None:
    corpus(40)
    arguments = ["batch", "--op", "explain", "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"),
                 "--size", "96", "--workers", "0", "--block-size", "2", "--device", "cpu"]
    command = [sys.executable, "-m", "spit.cli", *arguments]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "out/rows").glob("*.parquet")):
        assert run.poll() is None, run.communicate()
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    done = len(list((tmp_path / "out/rows").glob("*.parquet")))
    assert done < 20, "it was killed in the middle"
    ended = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    found = names(tmp_path / "out")
    assert len(found) == len(set(found)) == 36
    assert len(names(tmp_path / "out", True)) == 4


def test_an_image_that_ends_its_process_is_rejected(corpus: Make, tiny: Path, tmp_path: Path) -> None:
    corpus(10)
    for attempt in range(4):
        ended = subprocess.run([sys.executable, "-c", KILLER, str(tmp_path), str(tiny)], capture_output=True,
                               text=True, check=False, timeout=120)
        assert ended.returncode == (9 if attempt < 3 else 0), ended.stderr
    rejects = read_rows(tmp_path / "out", True).to_pylist()
    assert [one["key"] for one in rejects] == ["0003.png", "0005.png"]
    assert "its worker ended twice" in rejects[1]["error"]
    assert len(names(tmp_path / "out")) == 8
    assert not [path.name for path in (tmp_path / "out").rglob(".*")]


def test_other_weights_are_another_run(work: Corpus, tmp_path: Path) -> None:
    run_batch(work, tmp_path / "out", HERE, "cpu")
    other = Corpus(work.inputs, work.work, "spit_tiny_16", 32)
    with pytest.raises(SpitError, match=r"holds another run: model was \"[0-9a-f]+\", is \"[0-9a-f]+\""):
        run_batch(other, tmp_path / "out", HERE, "cpu")


def test_workers_need_ray(work: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SpitError, match=r"needs ray\[data\]; install the extra"):
        run_batch(work, tmp_path / "out", Cluster(workers=2), "cpu")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="expected workers for --address"):
        run_batch(work, tmp_path / "out", Cluster(workers=0, address="auto"), "cpu")
