"""Deletion and insertion curves as a picture."""

from collections.abc import Sequence
from pathlib import Path

from spit.errors import MissingExtra
from spit.evaluation.faithfulness import Row

COLORS = {"flow": "#1b7837", "rollout": "#5aae61", "prototype": "#762a83", "lime": "#e08214", "relevance": "#4e79a7",
          "random": "#8c8c8c"}


def check_matplotlib() -> None:
    """Rather before the work than after it.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots", "drawing deletion and insertion curves") from error


def draw_curves(rows: Sequence[Row], title: str, target: Path) -> None:
    """For each model the probability left as pixels go, most important first, and there as they come.

    The file comes under a temporary name first: it is whole or not there.
    """
    check_matplotlib()
    from matplotlib.figure import Figure

    models = [*dict.fromkeys(row.model for row in rows)]
    figure = Figure(figsize=(1 + 4.5 * len(models), 7.5), layout="constrained")
    panels = figure.subplots(2, len(models), sharex=True, sharey=True, squeeze=False)
    for column, model in enumerate(models):
        for axes, kind, better in zip(panels[:, column], ("deletion", "insertion"), ("lower", "higher"), strict=True):
            for row in rows:
                if row.model == model:
                    axes.plot(row.shares, getattr(row, kind), marker="o", markersize=3.5, label=row.method,
                              color=COLORS.get(row.method), linestyle="--" if row.method == "random" else "-")
            axes.set_title(f"{model}: {kind}, {better} is better", fontsize=10.5, loc="left")
            axes.grid(True, alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
        panels[0, column].set_xlabel("share of the pixels removed, most important first")
        panels[1, column].set_xlabel("share of the pixels shown, most important first")
    panels[0, 0].set_ylim(0, None)
    for axes in panels[:, 0]:
        axes.set_ylabel("probability of the predicted class")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    figure.suptitle(title, fontsize=13)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.part")
    figure.savefig(temporary, dpi=130, format="png")
    temporary.replace(target)
