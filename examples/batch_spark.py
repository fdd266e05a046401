"""Classify a folder of images with Spark.

    python examples/batch_spark.py FOLDER

`Operation` is a plain callable from encoded images to rows. Each Python worker of Spark makes one, and calls it for
every batch that it gets.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession

import spit
from spit.batch.operations import Operation
from spit.batch.options import Work


def classify(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The likeliest class of each image, or why there is none."""
    operation = Operation(spit.load("spit_tiny_16"), Work("classify", top=1))
    for batch in batches:
        rows = operation({"key": batch["path"].map(lambda path: Path(path).name), "bytes": batch["content"]})
        yield pd.DataFrame({"key": rows["key"], "class": [
            error or top[0]["name"] for top, error in zip(rows["top"], rows["error"], strict=True)]})


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python is this one
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 64)  # images in a call
    files = spark.read.format("binaryFile").load(sys.argv[1]).select("path", "content")
    for row in files.mapInPandas(classify, "key string, class string").orderBy("key").collect():
        print(f"{row['key']}: {row['class']}")
    spark.stop()
