"""Classify a folder of images with Daft.

    python examples/batch_daft.py FOLDER

`Operation` is a plain callable from encoded images to rows. Daft makes the class once in each of its workers.
"""

import sys
from pathlib import Path

import daft

import spit
from spit.batch.operations import Operation
from spit.batch.options import Work


@daft.cls(max_concurrency=1)
class Classifier:
    """A model that names the likeliest class of each image, or says why there is none."""

    def __init__(self) -> None:
        self.operation = Operation(spit.load("spit_tiny_16"), Work("classify", top=1))

    @daft.method.batch(return_dtype=daft.DataType.string())
    def name(self, keys: daft.Series, files: daft.Series) -> list[str]:
        rows = self.operation({"key": keys.to_pylist(), "bytes": files.to_pylist()})
        return [error or top[0]["name"] for top, error in zip(rows["top"], rows["error"], strict=True)]


if __name__ == "__main__":
    paths = sorted(Path(sys.argv[1]).iterdir())
    frame = daft.from_pydict({"key": [path.name for path in paths], "file": [path.read_bytes() for path in paths]})
    frame = frame.with_column("class", Classifier().name(frame["key"], frame["file"]))
    for row in frame.select("key", "class").to_pylist():
        print(f"{row['key']}: {row['class']}")
