"""Classify a folder of images with Dask.

    python examples/batch_dask.py FOLDER

`Operation` is a plain callable from encoded images to rows. Each process of Dask makes one, and calls it for every
partition that it gets.
"""

import sys
from functools import cache
from pathlib import Path

import dask.bag

import spit
from spit.batch.operations import Operation
from spit.batch.options import Work


@cache  # once in each process
def operation() -> Operation:
    return Operation(spit.load("spit_tiny_16"), Work("classify", top=1))


def classify(paths: list[Path]) -> list[tuple[str, str]]:
    """The likeliest class of each image, or why there is none."""
    paths = list(paths)
    rows = operation()({"key": [path.name for path in paths], "bytes": [path.read_bytes() for path in paths]})
    return [(key, error or top[0]["name"]) for key, top, error in zip(
        rows["key"], rows["top"], rows["error"], strict=True)]


if __name__ == "__main__":
    files = sorted(Path(sys.argv[1]).iterdir())
    answers = dask.bag.from_sequence(files, partition_size=16).map_partitions(classify)
    for name, answer in answers.compute(scheduler="processes", num_workers=2):
        print(f"{name}: {answer}")
