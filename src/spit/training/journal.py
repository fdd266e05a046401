"""The metrics of a run: ``metrics.jsonl``, TensorBoard if it is installed, a listener, and the report at the end."""

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from spit.devices import machine
from spit.documents import Sheet, as_text, flat, read_json
from spit.drawing.plots import new_figure, png_of
from spit.errors import MissingExtra
from spit.files import write_whole
from spit.training import TrainingError
from spit.wording import plural

METRICS, REPORT, CURVES = "metrics.jsonl", "report.md", "curves.png"


class Listener:
    """Follows a run, as a progress bar does; here each method does nothing."""

    def begin(self, step: int, total: int) -> None:
        """The run starts at a step."""

    def advance(self, step: int) -> None:
        """A step is done. It comes without metrics, which would wait for the device."""

    def figures(self, line: Mapping[str, Any]) -> None:
        """A line of ``metrics.jsonl``."""

    def say(self, text: str) -> None:
        """A message for the user."""


class Journal:
    """The metrics of a run on disk, one JSON object a line.

    Args:
        folder: of the run; None, in all processes but the first, writes nothing.
        step: the step to resume from; later lines, of a process that was killed, are removed.
        listener: gets every line too.
    """

    def __init__(self, folder: Path | None, step: int, listener: Listener) -> None:
        self._listener = listener
        self._path: Path | None = None
        self._board: Any = None
        if folder is None:
            return
        self._path = folder / METRICS
        folder.mkdir(parents=True, exist_ok=True)
        kept = [line for line in read_metrics(folder) if line["step"] <= step]
        write_whole(self._path, "".join(json.dumps(line) + "\n" for line in kept).encode())
        if find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def write(self, kind: str, step: int, figures: Mapping[str, float]) -> None:
        """Append a line in one write."""
        line = {"kind": kind, "step": step, **figures}
        if self._path is not None:
            try:
                with self._path.open("ab") as file:
                    file.write((json.dumps(line) + "\n").encode())
            except OSError as error:
                raise TrainingError(f"{self._path}: cannot append a line ({error.strerror}); make room and run the "
                                    "same command to resume from the last checkpoint") from error
        if self._board is not None:
            for name, value in figures.items():
                self._board.add_scalar(f"{kind}/{name}", value, step)
        self._listener.figures(line)

    def close(self) -> None:
        if self._board is not None:
            self._board.close()


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document of a run, atomically."""
    write_whole(path, (json.dumps(document, indent=2) + "\n").encode())


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The complete lines of a run's ``metrics.jsonl``."""
    path = folder / METRICS
    lines = []
    for text in path.read_text(errors="replace").splitlines() if path.is_file() else []:
        try:
            line = read_json(text)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("step"), int):
            lines.append(line)
    return lines


def write_report(folder: Path, title: str, recipe: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Write what was trained, how, and the result; with curves if matplotlib is installed, else how to get them.

    Args:
        title: what was trained.
        recipe: its sections, as the report shows them.
    """
    lines = read_metrics(folder)
    train, validation = ([line for line in lines if line.get("kind") == kind] for kind in ("train", "validation"))
    optimization = recipe["optimization"]
    text = [f"# {title}: epochs {optimization['epochs']:g}, photos {result['photos']:,}", "",
            f"{plural(result['steps'], 'step')} of {optimization['batch']} photos at {recipe['data']['size']}², seed "
            f"{recipe['run']['seed']}, {optimization['precision']}; torch {torch.__version__} on {machine()}.", ""]
    if train:
        speed = sorted(line["images_per_second"] for line in train)[len(train) // 2]
        skipped = sum(line.get("skipped", 0) for line in train)
        text += [f"Training loss {_losses(train)}; "
                 f"{speed:,.{0 if speed >= 10 else 1}f} images/s (median); {plural(skipped, 'step')} skipped.", ""]
    if "classes" in result:
        text += [f"{plural(result['classes'], 'class', 'classes')}, named in `classes.txt`.", ""]
    text.append("Validation, top1 as a share of the images:\n\n" + _table(validation) if validation else
                "No validation photos were given.\n")
    try:
        write_whole(folder / CURVES, _curves(train, validation, f"{title}, {result['steps']} steps"))
        text += [f"![Loss, accuracy and learning rate]({CURVES})", ""]
    except MissingExtra as error:
        text += [f"No curves: {error}.", ""]
    text += ["## Recipe", "", "`docs/recipes.md` and `docs/training.md` explain the settings; `patience` is the "
             "number of consecutive steps whose gradients are not finite; it is not early stopping.", ""]
    for section, values in recipe.items():
        settings = {key: value for key, value in flat(values).items() if value not in ("", (), [])}
        text.append(f"- **{section}**: " + "; ".join(f"{key} {as_text(value)}" for key, value in settings.items()))
    text += ["", "The model is in `model/`; load it with `spit.load`.", ""]
    write_whole(folder / REPORT, "\n".join(text).encode())


def _losses(train: Sequence[Mapping[str, Any]]) -> str:
    """The loss of the first and of the last line, with their steps."""
    told = []
    for before, line in zip((0, *(line["step"] for line in train)), train, strict=False):
        steps = f"mean of steps {before + 1} to {line['step']}" if line["step"] > before + 1 else f"step {line['step']}"
        told.append(f"{line.get('loss', float('nan')):.4f} ({steps})")
    return ", ".join(dict.fromkeys((told[0], told[-1])))


def _table(lines: Sequence[Mapping[str, Any]]) -> str:
    names = [name for name in lines[-1] if name not in ("kind", "step", "epoch")]
    few = lines if len(lines) <= 12 else [*lines[:: -(-len(lines) // 10)], lines[-1]]
    return Sheet(("step", "epoch", *names), [
        (str(line["step"]), f"{line['epoch']:.3g}", *(f"{line.get(name, 0):.4g}" for name in names)) for line in few
    ]).markdown()


def _curves(train: Sequence[Mapping[str, Any]], validation: Sequence[Mapping[str, Any]], title: str) -> bytes:
    """Loss, accuracy and learning rate over steps."""
    figure = new_figure(11, 3.4, title)
    for place, (name, words) in enumerate({"loss": "loss", "top1": "top-1", "lr": "learning rate"}.items(), 1):
        axes = figure.add_subplot(1, 3, place)
        for label, lines in (("train", train), ("validation", validation)):
            points = [(line["step"], line[name]) for line in lines if name in line]
            if points:
                axes.plot(*zip(*points, strict=True), label=label, marker="." if len(points) < 30 else "")
        axes.set(xlabel="step", title=words)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    return png_of(figure)
