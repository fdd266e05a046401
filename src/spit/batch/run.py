"""A whole run: list, compare with what is there, do the blocks that are left."""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spit import __version__
from spit.batch.arrow import pads
from spit.batch.blocks import REJECTED, ROWS, Folder, block_size
from spit.batch.operations import Operation
from spit.batch.options import Cluster, Columns, Work
from spit.batch.ray_pool import Place, open_place, run_on_ray
from spit.batch.sources import Listing, list_images
from spit.batch.worker import Done, Job, Worker
from spit.errors import SpitError
from spit.locks import locked
from spit.predictor import Predictor
from spit.tokenizers import Tokenizer

Progress = Callable[[str, int, int], None]  # what is being done, images so far, images in all
LOCK = ".spit-batch-lock"
BATCH = 16  # images in a pass at most


@dataclass(frozen=True)
class Corpus:
    """A corpus and what to do with it.

    Attributes:
        inputs: see :func:`~spit.batch.sources.list_images`.
        work: what to do with each image.
        model: a name, a folder or a file; workers on other machines load it by the same name.
        size: side of the square, or shorter side of whole images (default: the model's own; whole images keep theirs).
        tokenizer: in place of the model's.
        columns: of Parquet inputs.
    """

    inputs: tuple[str, ...]
    work: Work
    model: str = "spit_tiny_16"
    size: int | None = None
    tokenizer: Callable[[Predictor], Tokenizer | None] = lambda _: None
    columns: Columns = Columns()


@dataclass(frozen=True)
class Summary:
    """What is in a run's folder at the end.

    Attributes:
        images: of the corpus; each is a row or a reject.
        earlier: images that earlier runs of the same command had done.
        seconds: that this run took, with the loading of models.
        workers: processes that did it; 0 is this one.
    """

    images: int
    rows: int
    rejects: int
    earlier: int
    seconds: float
    workers: int


def run_batch(corpus: Corpus, output: Path, cluster: Cluster = Cluster(), device: str = "auto",  # noqa: B008
              progress: Progress = lambda *_: None) -> Summary:
    """Do all images of a corpus, or those that an earlier run of the same command has left.

    Args:
        output: a folder that every machine of the cluster sees.
        device: "cpu", "cuda" or "auto".

    Raises:
        SpitError: the folder holds another run or is in use, or blocks failed; the same call continues.
    """
    output = output.absolute()
    with locked(output / LOCK) as mine:
        if not mine:
            raise SpitError(f"{output}: another spit batch is writing there; wait for it, or choose another --output")
        progress("Listing", 0, 0)
        listing = list_images(corpus.inputs, corpus.columns)
        progress("Starting", 0, len(listing))
        with open_place(cluster, device) as place:
            return _run(corpus, listing, place, cluster, output, progress)


def _run(corpus: Corpus, listing: Listing, place: Place, cluster: Cluster, output: Path,
         progress: Progress) -> Summary:
    """Do the blocks of a listing that ``output`` does not have."""
    here = place.device if place.workers == 0 else "cpu"
    model = os.path.abspath(corpus.model) if os.path.exists(corpus.model) else corpus.model  # workers may be elsewhere
    job = Job(tuple(corpus.inputs), corpus.columns, output, corpus.work, model, corpus.size, None, place.device,
              cluster.batch or BATCH, place.decoders)
    predictor = job.predictor(here)
    tokenizer = corpus.tokenizer(predictor)
    if tokenizer is not None:
        job = replace(job, tokenizer=tokenizer)
        predictor = predictor.with_tokenizer(tokenizer)
    about = {**Operation(predictor, corpus.work, corpus.size).settings(), "device": place.device.partition(":")[0],
             "columns": corpus.columns.to_dict(), "spit": __version__}
    folder, size = Folder(output), cluster.block_size or block_size(len(listing))
    blocks = folder.begin(listing, about, size)
    left = sorted(set(range(blocks)) - folder.finished())
    earlier = len(listing) - sum(min(size, len(listing) - block * size) for block in left)
    start, done = time.perf_counter(), 0
    progress("Loading models", earlier, len(listing))
    finished: Iterable[Done] = ()
    if left:
        finished = run_on_ray(job, place, left) if place.workers else map(Worker(job, predictor), left)
    for one in finished:
        done += one.rows + one.rejects
        speed = done / (time.perf_counter() - start)
        progress(f"{speed:,.1f} images/s", earlier + done, len(listing))
    rows, rejects = folder.counts()
    return Summary(len(listing), rows, rejects, earlier, time.perf_counter() - start, place.workers)


def read_rows(output: Path, rejects: bool = False) -> Any:
    """The rows of a run, or its rejects, as a pyarrow table, in the order of the input."""
    folder = Path(output) / (REJECTED if rejects else ROWS)
    files = [str(file) for file in sorted(folder.glob("*.parquet"), key=lambda file: int(file.stem))]
    return pads.dataset(files, format="parquet").to_table()
