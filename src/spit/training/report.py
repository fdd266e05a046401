"""The report of a finished run: ``report.md`` and ``curves.png`` from its metrics."""

import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from spit.training.journal import read_metrics
from spit.weights import write_whole

REPORT = "report.md"
CURVES = "curves.png"


def write_report(folder: Path, recipe: Mapping[str, Any], result: Mapping[str, Any],
                 say: Callable[[str], None] = lambda text: None) -> None:
    """Write what was trained, how, and the result; with curves if matplotlib is installed."""
    lines = read_metrics(folder)
    drawn = _draw(lines, f"{result['name']}, {result['steps']} steps", folder / CURVES)
    if not drawn:
        say("no curves: pip install -e '.[plots]' installs matplotlib")
    write_whole(folder / REPORT, as_markdown(recipe, result, lines, drawn).encode())


def as_markdown(recipe: Mapping[str, Any], result: Mapping[str, Any], lines: Sequence[Mapping[str, Any]],
                drawn: bool) -> str:
    """The report."""
    train = [line for line in lines if line.get("kind") == "train"]
    text = [f"# {result['name']}: {recipe['optimization']['epochs']:g} epochs of {result['photos']:,} photos",
            "", f"{result['steps']:,} steps of {recipe['optimization']['batch']} photos at {recipe['data']['size']}², "
                f"seed {recipe['run']['seed']}, {recipe['optimization']['precision']}; "
                f"torch {torch.__version__} on {_machine()}.", ""]
    if train:
        speeds = sorted(line["images_per_second"] for line in train)
        skipped = sum(line.get("skipped", 0) for line in train)
        losses = [line["loss"] for line in train if "loss" in line] or [float("nan")]
        text += [f"Training loss {losses[0]:.4f} at first, {losses[-1]:.4f} at the end; "
                 f"{speeds[len(speeds) // 2]:,.0f} images/s (median); {skipped} steps skipped.", ""]
    text += _validation_table([line for line in lines if line.get("kind") == "validation"])
    if drawn:
        text += [f"![Loss, accuracy and learning rate]({CURVES})", ""]
    text += ["## Recipe", ""]
    for section, values in recipe.items():
        text += [f"- **{section}**: " + ", ".join(
            f"{key} {value}" for key, value in values.items() if key != "output")]  # it is this folder
    return "\n".join([*text, "", "The model is in `model/`; load it with `spit.load`.", ""])


def _validation_table(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    if not lines:
        return ["No validation photos were given.", ""]
    names = [name for name in lines[-1] if name not in ("kind", "step", "epoch")]
    few = lines if len(lines) <= 12 else [*lines[:: -(-len(lines) // 10)], lines[-1]]
    rows = [f"| {line['step']} | {line['epoch']:g} | " + " | ".join(f"{line.get(name, 0):.4g}" for name in names) + " |"
            for line in few]
    return ["| step | epoch | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 2), *rows, ""]


def _draw(lines: Sequence[Mapping[str, Any]], title: str, path: Path) -> bool:
    """Draw loss, accuracy and learning rate over steps; False if matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    for place, name in enumerate(("loss", "top1", "lr"), 1):
        axes = figure.add_subplot(1, 3, place)
        for kind in ("train", "validation"):
            points = [(line["step"], line[name]) for line in lines if line.get("kind") == kind and name in line]
            if points:
                axes.plot(*zip(*points, strict=True), label=kind, marker="." if len(points) < 30 else "")
        axes.set(xlabel="step", title={"loss": "loss", "top1": "top-1", "lr": "learning rate"}[name])
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    figure.savefig(path, dpi=120)
    return True


def _machine() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
