"""Measurements of many images as rows of a table, and the rows as a picture."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from comparison.methods import METHODS, Method
from spit.drawing.plots import new_figure, png_of, tidy
from spit.evaluation.runner import Record

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
CURVES = {
    "explained_variation": "explained variation R², more is better",
    "achievable_accuracy": "achievable accuracy, more is better",
    "undersegmentation_error": "undersegmentation error, less is better",
    "boundary_recall": "boundary recall, more is better",
}
OURS = {"spit": ("#00441b", "-"), "spit-fast": ("#1b7837", "--"), "spit-unrefined": ("#5aae61", ":"),
        "spit-compact": ("#5aae61", "-."), "spit-rounds": ("#a6dba0", "--"), "spit-paper": ("#a6dba0", ":")}
PEERS = ("#4e79a7", "#e15759", "#b07aa1", "#f28e2b", "#76b7b2", "#9c755f", "#edc948", "#ff9da7", "#8c8c8c")
MARKS = "os^vDPX<>"


@dataclass(frozen=True)
class Row:
    """One method at one count, ``wanted``: means over the images.

    Attributes:
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
        """The row as text: the title, :data:`COLUMNS`, and ``region_size 15 (160), 16 (40)``."""
        values = self.settings if len(self.settings) == 1 else [f"{value} ({n})" for value, n in self.settings.items()]
        return [self.title, *(form.format(getattr(self, name)) for name, (_, form) in COLUMNS.items()),
                f"{self.parameter} {', '.join(values)}"]


def summarize(method: Method, wanted: int, records: Sequence[Record]) -> Row:
    """One row from the measurements of all images."""
    times = [1000 * record["seconds"] for record in records]
    means = {name: fmean(record[name] for record in records) for name in ("labels", "regions", "compactness", *CURVES)}
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


def draw_comparison(rows: Sequence[Row], title: str) -> bytes:
    """Every metric against the count that was reached, or at one count method by method, as a PNG."""
    counts = sorted({row.wanted for row in rows})
    if len(counts) > 1:
        figure = new_figure(12, 8, title)
        _draw_curves(figure, rows, counts)
    else:
        figure = new_figure(13, 1.3 + 0.36 * len(rows), title)
        _draw_dots(figure, ranked(rows, counts[0])[::-1])
    return png_of(figure)


def _draw_curves(figure: Any, rows: Sequence[Row], counts: Sequence[int]) -> None:
    for axes, (metric, label) in zip(figure.subplots(2, 2).flat, CURVES.items(), strict=True):
        for row in reversed(ranked(rows, counts[-1])):  # the best on top
            curve = sorted((r for r in rows if r.method == row.method), key=lambda r: r.regions)
            axes.plot([r.regions for r in curve], [getattr(r, metric) for r in curve], label=row.title, **_style(row))
        tidy(axes, label)
        axes.set_ylim(*_span([getattr(row, metric) for row in rows]))
        axes.set_xscale("log")
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
        axes.set_xlabel("regions, actual mean count (logarithmic)")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right center", frameon=False,
                  title=f"by R² at {counts[-1]}", alignment="left")


def _draw_dots(figure: Any, rows: Sequence[Row]) -> None:
    panels = figure.subplots(1, len(CURVES) + 1, sharey=True)
    named = {**CURVES, "milliseconds": "milliseconds an image, less is better"}
    for axes, (metric, label) in zip(panels, named.items(), strict=True):
        axes.set_xscale("log" if metric == "milliseconds" else "linear")
        for place, row in enumerate(rows):
            value = getattr(row, metric)
            axes.plot(value, place, "o", color=_style(row)["color"], markersize=9 if row.ours else 7)
            text = f"{value:.0f}" if metric == "milliseconds" else f"{value:.3f}".lstrip("0")
            axes.annotate(text, (value, place), (8, 0), textcoords="offset points", va="center", fontsize=9,
                          weight="bold" if row.ours else "normal")
        tidy(axes, label.replace(", ", "\n"))
        axes.margins(x=0.3, y=0.06)
        axes.tick_params(axis="x", labelsize=8)
    panels[0].set_yticks(range(len(rows)), [f"{row.title}, {row.regions:.0f}" for row in rows])
    for label, row in zip(panels[0].get_yticklabels(), rows, strict=True):
        label.set_weight("bold" if row.ours else "normal")
    figure.supxlabel("beside each method, its actual mean count of regions", fontsize=9)


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Limits of an axis: nearly all values; a method far below the others leaves the panel."""
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    room = 0.5 * max(high - low, abs(middle) * 0.01)
    edges = max(min(values), low - room), min(max(values), high + room)
    margin = 0.05 * max(edges[1] - edges[0], abs(middle) * 0.01)
    return float(edges[0] - margin), float(edges[1] + margin)


def _style(row: Row) -> dict[str, Any]:
    if row.ours:
        color, line = OURS[row.method]
        return {"color": color, "marker": "o", "linewidth": 3, "markersize": 6, "zorder": 3, "linestyle": line}
    place = [name for name, method in METHODS.items() if not method.ours].index(row.method)
    return {"color": PEERS[place], "marker": MARKS[place], "linewidth": 1.2, "markersize": 5}
