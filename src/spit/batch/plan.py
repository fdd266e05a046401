"""What a corpus will take, from a sample of it."""

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from spit.batch.blocks import REJECTED, ROWS
from spit.batch.options import Cluster
from spit.batch.run import Corpus, Progress, prepared, read_rows, run_prepared
from spit.errors import ImageError


@dataclass(frozen=True)
class Plan:
    """What a corpus will take.

    Attributes:
        images: of the corpus.
        sample: images that were tried, evenly spread.
        rejected: images of the sample that failed.
        seconds: that all workers together will need.
        spread: half the width of the 95 % interval of ``seconds``, from the images of the sample.
        bytes: of the output.
        workers: processes that were tried and that the seconds hold for; 0 is this one.
    """

    images: int
    sample: int
    rejected: int
    seconds: float
    spread: float
    bytes: int
    workers: int


def plan_batch(corpus: Corpus, output: Path, cluster: Cluster = Cluster(), device: str = "auto",  # noqa: B008
               sample: int = 64, progress: Progress = lambda *_: None) -> Plan:
    """Try a sample of a corpus with the workers of the whole run, and tell what all of it will take.

    Each worker does a share of the sample at the same time as the others. Starting Ray and loading models are not
    counted. Nothing is left in ``output``.

    Raises:
        ImageError: no image of the sample can be read.
    """
    output = output.absolute()
    folder = next(path for path in (output, *output.parents) if path.is_dir()) / f".spit-plan-{uuid.uuid4().hex}"
    with prepared(corpus, cluster, device, progress) as (place, listing):
        some = listing.spread(sample)
        share = cluster.replace(block_size=-(-len(some) // max(place.workers, 1)))
        try:
            found = run_prepared(corpus, some, place, share, folder, progress)
            rows = read_rows(folder).select(["decode_seconds", "seconds"]).to_pydict()
            size = sum(file.stat().st_size for name in (ROWS, REJECTED) for file in (folder / name).iterdir())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if not found.rows:
        raise ImageError(f"expected images that can be read in a sample of {found.images}, got none; check --input")
    times = [sum(one) for one in zip(*rows.values(), strict=True)]
    seconds = len(listing) * found.busy / found.images / max(place.workers, 1)
    error = stdev(times) / len(times) ** 0.5 / fmean(times) if len(times) > 1 else 0.0
    return Plan(len(listing), found.images, found.rejects, seconds, 1.96 * error * seconds,
                len(listing) * size // found.images, place.workers)
