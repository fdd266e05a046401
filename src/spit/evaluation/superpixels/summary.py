"""Measurements of many images as one row of a table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from spit.evaluation.superpixels.methods import Method

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
    """One method at one count: means over the images, but for the time.

    Attributes:
        wanted: the count it was calibrated to; ``regions`` is what it reached.
        settings: its parameter's values, each with the number of images it was used on.
        labels: what it called regions, before they were told apart by connection.
        connected: the share of images on which every label was 4-connected.
        milliseconds: the median over the images, since a shared machine has its moments.
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


def summarize(method: Method, wanted: int, records: Sequence[Mapping[str, Any]]) -> Row:
    """One row from the measurements of all images."""
    def mean(name: str) -> float:
        return fmean(record[name] for record in records)

    times = [1000 * record["seconds"] for record in records]
    return Row(
        method=method.name, title=method.title, ours=method.ours, wanted=wanted, parameter=method.parameter,
        settings={f"{value:g}": images
                  for value, images in Counter(record["parameter"] for record in records).most_common()},
        images=len(records), regions=mean("regions"), labels=mean("labels"),
        explained_variation=mean("explained_variation"), achievable_accuracy=mean("achievable_accuracy"),
        undersegmentation_error=mean("undersegmentation_error"), boundary_recall=mean("boundary_recall"),
        compactness=mean("compactness"), connected=fmean(record["regions"] == record["labels"] for record in records),
        milliseconds=median(times), milliseconds_mean=fmean(times),
    )


def as_markdown(rows: Sequence[Row], about: str) -> str:
    """The rows as tables, one for each count, the best R² first."""
    lines = ["# Superpixels compared", "", about, ""]
    for wanted in sorted({row.wanted for row in rows}):
        headings = ["method", *(heading for heading, _ in COLUMNS.values()), "setting"]
        lines += [f"## About {wanted} regions", "", f"| {' | '.join(headings)} |",
                  f"|---|{'---:|' * len(COLUMNS)}---|"]
        for row in ranked(rows, wanted):
            title = f"**{row.title}**" if row.ours else row.title
            lines.append(f"| {' | '.join([title, *row.cells(), setting(row)])} |")
        lines.append("")
    return "\n".join([*lines, *(f"- {line}" for line in missed(rows)), "", NOTES, ""])


def as_document(rows: Sequence[Row], **about: Any) -> dict[str, Any]:
    """The rows as JSON has them."""
    return {**about, "rows": [asdict(row) for row in rows]}


def ranked(rows: Sequence[Row], wanted: int) -> list[Row]:
    """The rows at one count, the best R² first."""
    return sorted((row for row in rows if row.wanted == wanted), key=lambda row: -row.explained_variation)


def missed(rows: Sequence[Row]) -> list[str]:
    """A line for each method that could not be brought near a count."""
    return [f"{row.title} cannot be brought to {row.wanted} regions; it has {row.regions:.0f}" for row in rows
            if abs(row.regions / row.wanted - 1) > NEAR]


def setting(row: Row) -> str:
    """``region_size 15 (160), 16 (40)``: the parameter's values and the images of each, where there are several."""
    if len(row.settings) == 1:
        return f"{row.parameter} {next(iter(row.settings))}"
    return f"{row.parameter} " + ", ".join(f"{value} ({images})" for value, images in row.settings.items())


NEAR = 0.05  # how far a count may be off without a word
NOTES = """\
Regions are 4-connected: a label whose pixels lie apart counts as often as it has pieces, and all figures are of
these regions. R² is the explained variation of RGB; ASA, undersegmentation error (Neubert and Protzel) and boundary
recall are means over all human segmentations of an image; "connected" is the share of images on which every label
was one region already. Time is the median over images of the method alone, on one thread. The last column has the
one parameter that was set to reach the count, with the images at each value where two values are mixed."""
