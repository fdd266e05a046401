"""Plans: what a corpus will take, from a sample that leaves nothing behind."""

from pathlib import Path

import pytest

from batch.conftest import Corpus as Make
from spit.batch.options import Cluster, Work
from spit.batch.plan import plan_batch
from spit.batch.run import Corpus, run_batch
from spit.errors import ImageError

HERE = Cluster(workers=0, block_size=4)


@pytest.fixture
def work(corpus: Make, tiny: Path) -> Corpus:
    return Corpus((str(corpus(30)),), Work("embed"), str(tiny), 32)


def test_a_plan(work: Corpus, tmp_path: Path) -> None:
    found = plan_batch(work, tmp_path / "out", HERE, "cpu", sample=20)
    assert (found.images, found.sample, found.rejected, found.workers) == (30, 20, 2, 0)
    assert found.seconds > 0
    assert found.bytes > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    done = run_batch(work, tmp_path / "out", HERE, "cpu")
    size = sum(path.stat().st_size for path in (tmp_path / "out").rglob("0*.parquet"))
    assert done.rows == 27
    assert 0.3 < found.bytes / size < 3


def test_a_plan_of_broken_images(tmp_path: Path, tiny: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"?")
    with pytest.raises(ImageError, match="expected images that can be read in a sample of 1, got none"):
        plan_batch(Corpus((str(tmp_path),), Work("embed"), str(tiny), 32), tmp_path / "out", HERE, "cpu")
