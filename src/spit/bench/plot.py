"""The growth of cost as a picture."""

from collections.abc import Sequence
from typing import Any

from spit.evaluation.plots import new_figure, png_of, tidy


def draw_scaling(cases: Sequence[dict[str, Any]], title: str) -> bytes:
    """What :func:`~spit.bench.scaling.measure_scaling` found: cost against size, and against batch, as a PNG."""
    figure = new_figure(10, 4.2, title)
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
        axes.legend(frameon=False)
        tidy(axes)
    return png_of(figure)
