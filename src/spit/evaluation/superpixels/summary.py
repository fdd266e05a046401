"""Measurements of many images as one row of a table."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean, median
from typing import Any

from spit.evaluation.journal import Record
from spit.evaluation.superpixels.methods import Method
from spit.evaluation.superpixels.scores import Scores

NEAR = 0.05  # relative error of a count that needs no remark

COLUMNS = {
    "regions": ("regions", "{:.1f}"),
    "explained_variation": ("R² ↑", "{:.4f}"),
    "achievable_accuracy": ("ASA ↑", "{:.4f}"),
    "undersegmentation_error": ("UE ↓", "{:.4f}"),
    "boundary_recall": ("recall ↑", "{:.4f}"),
    "compactness": ("compactness", "{:.3f}"),
    "connected": ("connected", "{:.0%}"),
    "milliseconds": ("ms", "{:.1f}"),
}


@dataclass(frozen=True)
class Row:
    """One method at one count: means over the images.

    Attributes:
        wanted: the count that it was calibrated to; ``regions`` is what it reached.
        settings: values of its parameter, each with the number of images.
        labels: different labels, before they were split into connected regions.
        connected: share of images on which every label was 4-connected.
        milliseconds: median over the images, which a busy moment of the machine does not change.
    """

    method: str
    title: str
    ours: bool
    wanted: int
    parameter: str
    settings: dict[str, int]
    images: int
    regions: float
    labels: float
    explained_variation: float
    achievable_accuracy: float
    undersegmentation_error: float
    boundary_recall: float
    compactness: float
    connected: float
    milliseconds: float
    milliseconds_mean: float

    def cells(self) -> list[str]:
        """The row as text, in the order of :data:`COLUMNS`."""
        return [form.format(getattr(self, name)) for name, (_, form) in COLUMNS.items()]


def summarize(method: Method, wanted: int, records: Sequence[Record]) -> Row:
    """One row from the measurements of all images."""
    times = [1000 * record["seconds"] for record in records]
    means: dict[str, Any] = {item.name: fmean(record[item.name] for record in records) for item in fields(Scores)}
    settings = Counter(f"{record['parameter']:g}" for record in records)
    return Row(method=method.name, title=method.title, ours=method.ours, wanted=wanted, parameter=method.parameter,
               settings=dict(settings.most_common()), images=len(records), **means,
               connected=fmean(record["regions"] == record["labels"] for record in records),
               milliseconds=median(times), milliseconds_mean=fmean(times))


def ranked(rows: Sequence[Row], wanted: int) -> list[Row]:
    """The rows at one count, the best R² first."""
    return sorted((row for row in rows if row.wanted == wanted), key=lambda row: -row.explained_variation)


def missed(rows: Sequence[Row]) -> list[str]:
    """A line for each method that has no setting near a count."""
    return [f"{row.title} cannot be brought to {row.wanted} regions; it has {row.regions:.0f}" for row in rows
            if abs(row.regions / row.wanted - 1) > NEAR]


def setting(row: Row) -> str:
    """``region_size 15 (160), 16 (40)``: values of the parameter, and the number of images if there are several."""
    if len(row.settings) == 1:
        return f"{row.parameter} {next(iter(row.settings))}"
    return f"{row.parameter} " + ", ".join(f"{value} ({images})" for value, images in row.settings.items())
