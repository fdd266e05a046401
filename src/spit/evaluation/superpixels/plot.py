"""The comparison as a picture: curves over several counts, or dots at one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spit.evaluation.plots import new_figure, png_of, tidy
from spit.evaluation.superpixels.methods import METHODS
from spit.evaluation.superpixels.summary import Row, ranked

METRICS = {
    "explained_variation": "explained variation R², more is better",
    "achievable_accuracy": "achievable accuracy, more is better",
    "undersegmentation_error": "undersegmentation error, less is better",
    "boundary_recall": "boundary recall, more is better",
}
OURS = {"spit": ("#1b7837", "-"), "spit-unrefined": ("#5aae61", "--"), "spit-paper": ("#a6dba0", ":")}
PEERS = ("#4e79a7", "#e15759", "#b07aa1", "#f28e2b", "#76b7b2", "#9c755f", "#edc948", "#ff9da7", "#8c8c8c")
MARKS = "os^vDPX<>"


def draw_comparison(rows: Sequence[Row], title: str) -> bytes:
    """Every metric against the count that was reached, or at one count method by method, as a PNG."""
    counts = sorted({row.wanted for row in rows})
    if len(counts) > 1:
        figure = new_figure(12, 8, title)
        _draw_curves(figure, rows)
    else:
        figure = new_figure(13, 1.3 + 0.36 * len(rows), title)
        _draw_dots(figure, ranked(rows, counts[0])[::-1])
    return png_of(figure)


def _draw_curves(figure: Any, rows: Sequence[Row]) -> None:
    largest = max(row.wanted for row in rows)
    panels = figure.subplots(2, 2).flat
    for axes, (metric, label) in zip(panels, METRICS.items(), strict=True):
        for row in reversed(ranked(rows, largest)):  # the best on top
            curve = sorted((r for r in rows if r.method == row.method), key=lambda r: r.regions)
            axes.plot([r.regions for r in curve], [getattr(r, metric) for r in curve], label=row.title, **_style(row))
        tidy(axes, label)
        axes.set_ylim(*_span([getattr(row, metric) for row in rows]))
        axes.set_xscale("log")
        ticks = sorted({row.wanted for row in rows})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("regions, actual mean count (logarithmic)")
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside right center", frameon=False,
                  title=f"by R² at {largest}", alignment="left")


def _draw_dots(figure: Any, rows: Sequence[Row]) -> None:
    panels = figure.subplots(1, len(METRICS) + 1, sharey=True)
    named = {**{metric: label.replace(", ", "\n") for metric, label in METRICS.items()},
             "milliseconds": "milliseconds an image\nless is better"}
    for axes, (metric, label) in zip(panels, named.items(), strict=True):
        values = [getattr(row, metric) for row in rows]
        if metric == "milliseconds":
            axes.set_xscale("log")
        for place, (row, value) in enumerate(zip(rows, values, strict=True)):
            axes.plot(value, place, "o", color=_style(row)["color"], markersize=9 if row.ours else 7)
            text = f"{value:.0f}" if metric == "milliseconds" else f"{value:.3f}".lstrip("0")
            axes.annotate(text, (value, place), (8, 0), textcoords="offset points", va="center", fontsize=9,
                          weight="bold" if row.ours else "normal")
        tidy(axes, label)
        axes.margins(x=0.3, y=0.06)
        axes.tick_params(axis="x", labelsize=8)
    panels[0].set_yticks(range(len(rows)), [f"{row.title}, {row.regions:.0f}" for row in rows])
    for text, row in zip(panels[0].get_yticklabels(), rows, strict=True):
        text.set_weight("bold" if row.ours else "normal")
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
