"""The growth of cost as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spit.errors import MissingExtra


def draw_scaling(cases: Sequence[dict[str, Any]], title: str, target: Path) -> None:
    """Draw what :func:`~spit.bench.scaling.measure_scaling` gave: cost against size, and against batch."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots", "drawing the growth of cost") from error
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    by_size, by_batch = figure.subplots(1, 2)
    single = [case for case in cases if case["batch"] == 1]
    batched = [case for case in cases if case["side"] == 256]
    for name, color in (("tokenizer", "#1b7837"), ("features", "#762a83")):
        pixels = [case["side"] ** 2 for case in single]
        cost = [case[f"{name}_ms"] for case in single]
        by_size.loglog(pixels, cost, "o-", color=color, label=name)
        by_size.loglog(pixels, [cost[-1] * p / pixels[-1] for p in pixels], ":", color=color, linewidth=1)
        by_batch.loglog([case["batch"] for case in batched], [case[f"{name}_ms"] for case in batched], "o-",
                        color=color, label=name)
    by_size.set_xlabel("pixels of one image (dotted: linear)")
    by_size.set_ylabel("milliseconds per image")
    by_batch.set_xlabel("images of 256×256 in a batch")
    for axes in (by_size, by_batch):
        axes.grid(True, which="major", alpha=0.3)
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    temporary = target.with_name(f".{target.name}.part")
    figure.savefig(temporary, dpi=130, format=target.suffix.lstrip(".") or "png")
    temporary.replace(target)
