"""The training loop: any :class:`~spit.training.task.Task` on any :class:`~spit.training.batches.Batches`.

This is our own, and not a trainer library's, because a resumed run must end with the same bits. A step is a function
of (seed, step) and of the weights before it: photos, augmentation and dropout are seeded by them each time. A run that
was killed resumes from its last checkpoint, and ``metrics.jsonl`` has each step once.

On a GPU nothing in a step waits for the device: metrics are summed there and read every ``run.log`` steps, and the
optimizer itself skips a step whose gradients are not finite.
"""

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import torch
from torch.nn.parallel import DistributedDataParallel

from spit import weights
from spit.errors import Stopped
from spit.files import write_whole
from spit.interruption import on_signals
from spit.training import TrainingError
from spit.training.batches import Batch, Batches, mix_seed
from spit.training.checkpoint import Checkpoints
from spit.training.distributed import Team, part
from spit.training.journal import CURVES, METRICS, REPORT, Journal, Listener, read_metrics, write_json
from spit.training.meter import Meter
from spit.training.recipe import Recipe
from spit.training.state import State
from spit.training.task import Task
from spit.wording import plural

CHECKPOINTS, MODEL, RECIPE, CLASSES, RESULT = "checkpoints", "model", "recipe.json", "classes.txt", "result.json"
FILES = (CHECKPOINTS, MODEL, METRICS, RESULT, CLASSES, REPORT, CURVES, "tensorboard", RECIPE)  # removed in this order


class Outcome(NamedTuple):
    """How a run ended."""

    steps: int
    resumed: int  # the first step of this process
    seconds: float  # of this process
    figures: dict[str, float]  # of the last validation
    model: Path  # the folder that spit.load_model reads


def fit(task: Task, batches: Batches, folder: Path, team: Team, recipe: Recipe,
        listener: Listener | None = None, fresh: bool = False) -> Outcome:
    """Train a task to its end, from wherever an earlier process left it.

    Args:
        folder: of the run; only the first process writes there.
        recipe: size, augmentation, optimization and output; its other sections are only written down.
        fresh: delete the run in the folder, after everything has been checked.

    Raises:
        Stopped: SIGTERM or Ctrl-C; a checkpoint was written.
        TrainingError: the disk is full, every checkpoint is damaged or of another run, or gradients were not finite
            ``run.patience`` times in a row.
        ValueError: a batch too small for the processes and passes.
    """
    began = time.perf_counter()
    listener = listener if listener is not None and team.first else Listener()
    loop = _Loop(task, batches, folder, team, recipe, listener, fresh)
    try:
        if loop.first < loop.total:
            loop.run()
        with loop.state.averaged():
            if team.first:
                weights.save(task.product(), folder / MODEL)
    finally:
        loop.journal.close()
    lines = [line for line in read_metrics(folder) if team.first and line.get("kind") == "validation"]
    figures = {key: value for key, value in lines[-1].items() if key not in ("kind", "step")} if lines else {}
    return Outcome(loop.total, loop.first, time.perf_counter() - began, figures, folder / MODEL)


class _Loop:
    """A run from its first step in this process to its last; see :func:`fit`."""

    def __init__(self, task: Task, batches: Batches, folder: Path, team: Team, recipe: Recipe,
                 listener: Listener, fresh: bool) -> None:
        asked, count, batch = recipe.optimization, len(batches.photos), batches.batch
        if batch // 2 < team.size * asked.accumulate:
            raise ValueError(f"expected a batch of at least 2 photos for each of {team.size} processes and "
                             f"{asked.accumulate} passes, got {batch}; enlarge the batch")
        self.task, self.batches, self.team, self.recipe, self.listener = task, batches, team, recipe, listener
        self.total = batches.steps(asked.epochs)
        if count < batch:
            listener.say(f"{plural(count, 'photo')} for batches of {batch}: {plural(self.total, 'step')} in all; a "
                         "smaller optimization.batch makes more")
        elif asked.epochs * count < batch:
            listener.say(f"{asked.epochs:g} epochs of {plural(count, 'photo')} are less than a batch of {batch}; "
                         f"training for 1 step, {batches.epoch(1):.2g} epochs")
        module = task.module.to(team.device).train()
        self.state = State(module, task.groups(), asked)
        self.checkpoints = Checkpoints(folder / CHECKPOINTS)
        photos = batches.photos.fingerprint()
        self.about = {"recipe": recipe.to_dict(), "total": self.total, "photos": photos}
        if team.number(int(photos, 16) >> 1) != int(photos, 16) >> 1:
            raise TrainingError(f"process {team.rank} has other photos than the first; every machine needs the same")
        if fresh and team.first:
            _discard(folder)
        self.first = self._resume()
        if self.first:
            listener.say(f"resuming from step {self.first} of {self.total}")
        self.warmup = min(round(asked.warmup * count / batch), self.total)
        if team.first:  # nothing is written before, so that a run which is refused leaves nothing
            write_json(folder / RECIPE, recipe.to_dict())
            if batches.photos.classes:
                write_whole(folder / CLASSES, "".join(f"{name}\n" for name in batches.photos.classes).encode())
        self.journal = Journal(folder if team.first else None, self.first, listener)
        self.network = team.wrap(module)
        self.meter = Meter(team)
        self.read_at, self.read_step = time.perf_counter(), self.first

    def run(self) -> None:
        options, team = self.recipe.run, self.team
        self.listener.begin(self.first, self.total)
        batches = self.batches.loads(self.recipe.augment, self.first, self.total,
                                     part(self.batches.batch, team.rank, team.size))
        self.read_at = time.perf_counter()
        with _stop_signals(self._say_stopping) as stopping, closing(batches):
            for step, batch in enumerate(batches, self.first):
                self._step(step, batch)
                done = step + 1
                self.listener.advance(done)
                last = done == self.total
                logs, saves = done % options.log == 0, done % options.checkpoint == 0
                validates = last or self._validations(done) > self._validations(step)
                # Processes receive a signal at different steps: they agree at a step where they meet anyway.
                stops = team.any(stopping.is_set()) if team.size == 1 or logs or last else False
                if logs or saves or validates or stops:
                    self._log(done)
                began = time.perf_counter()
                if validates:
                    self._validate(done)
                if team.first and (saves or last or stops):
                    self.checkpoints.save(done, self.state.tensors(), self.about)
                self.read_at += time.perf_counter() - began  # the speed of training is without them
                if stops and not last:
                    raise Stopped(f"stopped at step {done} of {self.total} and saved; run the same command to resume")

    def _say_stopping(self) -> None:
        when = "after this step" if self.team.size == 1 else "when metrics are next logged"
        with suppress(RuntimeError):  # of Python, if the signal came while stderr was written to
            self.listener.say(f"stopping {when}, with a checkpoint; Ctrl-C again stops at once, without one")

    def _step(self, step: int, batch: Batch) -> None:
        """One step of the optimizer: forward and backward over this process's part, in ``accumulate`` passes."""
        torch.manual_seed(mix_seed(self.recipe.run.seed, step, self.team.rank))
        asked = self.recipe.optimization
        for number in range(asked.accumulate):
            some = batch[part(len(batch), number, asked.accumulate)]
            some = some.augmented(self.recipe.data.size, asked.compile)
            waits = isinstance(self.network, DistributedDataParallel) and number < asked.accumulate - 1
            with self.network.no_sync() if waits else nullcontext():  # type: ignore[operator]
                with self._autocast():
                    loss, figures = self.task.loss(self.network, some)
                # Gradients are averaged over processes; with this weight the result is the mean over the global batch.
                (loss * (len(some) * self.team.size / self.batches.batch)).backward()
            self.meter.add({"loss": loss, **figures}, len(some))
        self.meter.end_step(self.state.update(asked.rate(step, self.warmup, self.total), step))

    def _log(self, done: int) -> None:
        """Read the metrics since the last time; only this waits for the device."""
        means, skipped, longest = self.meter.read()
        now = time.perf_counter()
        speed = (done - self.read_step) * self.batches.batch / max(now - self.read_at, 1e-9)
        self.read_at, self.read_step = now, done
        rate = self.recipe.optimization.rate(done - 1, self.warmup, self.total)
        figures = {**means, "lr": rate, "epoch": round(self.batches.epoch(done), 4),
                   "images_per_second": round(speed, 1)}
        self.journal.write("train", done, {**figures, "skipped": skipped} if skipped else figures)
        if skipped:
            self.listener.say(f"skipped {skipped} steps before step {done}: their gradients were not finite")
        if longest >= self.recipe.run.patience:
            steps = self.checkpoints.steps()
            kept = f"the checkpoint of step {steps[-1]} is good" if steps else "there is no checkpoint yet"
            raise TrainingError(f"gradients were not finite in {longest} steps in a row, to step {done}; {kept}: check "
                                "the photos, or start a new run with a lower optimization.lr or precision fp32 in "
                                "another folder")

    def _validations(self, steps: int) -> int:
        """How many validations are due after so many steps, before the last."""
        between = self.recipe.run.validate
        return int(self.batches.epoch(steps) / between) if between else 0

    def _validate(self, done: int) -> None:
        module = self.task.module.eval()
        with self.state.averaged(), self._autocast():
            figures = self.task.validate()
        module.train()
        if figures:
            self.journal.write("validation", done, {"epoch": round(self.batches.epoch(done), 4), **figures})

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.team.device.type, torch.bfloat16, self.recipe.optimization.precision == "bf16")

    def _resume(self) -> int:
        """Restore the last checkpoint in every process, and return its step; the first process reads it."""
        saved, step = self.checkpoints.load() if self.team.first else None, 0
        if saved is not None:
            about, tensors = saved
            for key, what in (("photos", "on other photos, fingerprint"), ("total", "of another length, steps")):
                if about.get(key) != self.about[key]:
                    raise TrainingError(f"{self.checkpoints.folder} is of a run {what} {about.get(key)}, now "
                                        f"{self.about[key]}; choose another folder, or delete it "
                                        "with fresh and force")
            self.state.restore(tensors)
            step = about["step"]
        step = self.team.number(step)
        if step:
            self.team.agree(self.state.tensors().values())
        return step


def _discard(folder: Path) -> None:
    """Delete a run; other files in its folder stay."""
    for name in FILES:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _stop_signals(say: Callable[[], None]) -> Iterator[threading.Event]:
    """An event that SIGTERM and Ctrl-C set, and ``say`` is called; a second Ctrl-C interrupts at once."""
    stopping = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        if stopping.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not stopping.is_set():
            stopping.set()
            say()

    with on_signals(note, signal.SIGTERM, signal.SIGINT):
        yield stopping
