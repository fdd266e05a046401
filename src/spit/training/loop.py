"""The training loop: any :class:`~spit.training.task.Task` on any :class:`~spit.training.batches.Batches`.

This is our own, and not a trainer library's, because a resumed run must end with the same bits. A step is a function
of (seed, step) and of the weights before it: photos, augmentation and dropout are seeded by them each time. A run that
was killed resumes from its last checkpoint, and ``metrics.jsonl`` has each step once.

On a GPU nothing in a step waits for the device: metrics are summed there and read every ``run.log`` steps, and the
optimizer itself skips a step whose gradients are not finite.
"""

import time
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel

from spit import weights
from spit.errors import Stopped
from spit.tokens import plural
from spit.training.augment import apply
from spit.training.batches import Batches, Load, mix_seed
from spit.training.checkpoint import Checkpoints
from spit.training.distributed import Team, part
from spit.training.errors import TrainingError
from spit.training.journal import Journal, Listener, read_metrics
from spit.training.meter import Meter
from spit.training.recipe import Recipe
from spit.training.schedule import Schedule
from spit.training.signals import StopSignals
from spit.training.state import State
from spit.training.task import Batch, Task

CHECKPOINTS = "checkpoints"
MODEL = "model"


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        steps: of the whole run.
        resumed: the first step of this process.
        seconds: of this process.
        figures: the metrics of the last validation.
        model: the folder that :func:`spit.load_model` reads.
    """

    steps: int
    resumed: int
    seconds: float
    figures: dict[str, float]
    model: Path


def fit(task: Task, batches: Batches, folder: Path, team: Team, recipe: Recipe,
        listener: Listener | None = None) -> Outcome:
    """Train a task to its end, from wherever an earlier process left it.

    Args:
        folder: of the run; only the first process writes there.
        recipe: size, augmentation, optimization and output; its other sections are only written down.
        listener: follows the run.

    Raises:
        Stopped: SIGTERM or Ctrl-C; a checkpoint was written.
        TrainingError: the disk is full, every checkpoint is damaged or of another run, or gradients were not finite
            ``run.patience`` times in a row.
        ValueError: a batch too small for the processes and passes.
    """
    began = time.perf_counter()
    loop = _Loop(task, batches, folder, team, recipe, listener if listener is not None and team.first else Listener())
    try:
        if loop.first < loop.total:
            loop.run()
        with loop.state.averaged():
            if team.first:
                weights.save(task.product(), folder / MODEL)
    finally:
        loop.journal.close()
    figures = _last_figures(folder) if team.first else {}
    return Outcome(loop.total, loop.first, time.perf_counter() - began, figures, folder / MODEL)


class _Loop:
    """A run from its first step in this process to its last; see :func:`fit`."""

    def __init__(self, task: Task, batches: Batches, folder: Path, team: Team, recipe: Recipe,
                 listener: Listener) -> None:
        asked, count, batch = recipe.optimization, len(batches.photos), batches.batch
        if batch // 2 < team.size * asked.accumulate:
            raise ValueError(f"expected a batch of at least 2 photos for each of {team.size} processes and "
                             f"{asked.accumulate} passes, got {batch}; enlarge the batch")
        self.task, self.batches, self.team, self.recipe, self.listener = task, batches, team, recipe, listener
        self.total = batches.steps(asked.epochs)
        if count < batch:
            listener.say(f"{plural(count, 'photo')} for batches of {batch}: {plural(self.total, 'step')} in all; a "
                         "smaller optimization.batch makes more")
        module = task.module.to(team.device).train()
        self.state = State(module, task.groups(), asked.betas, asked.eps, asked.weight_decay, asked.ema)
        self.checkpoints = Checkpoints(folder / CHECKPOINTS)
        photos = batches.photos.fingerprint()
        self.about = {"recipe": recipe.to_dict(), "total": self.total, "photos": photos}
        if team.number(int(photos, 16) >> 1) != int(photos, 16) >> 1:
            raise TrainingError(f"process {team.rank} has other photos than the first; every machine needs the same")
        self.first = self._resume()
        if self.first:
            listener.say(f"resuming from step {self.first} of {self.total}")
        warmup = min(round(asked.warmup * count / batch), self.total)
        self.schedule = Schedule(asked.warmup_lr, asked.lr, asked.min_lr, warmup, self.total)
        self.journal = Journal(folder if team.first else None, self.first, listener)
        self.network = team.wrap(module)
        self.meter = Meter(team)
        self.read_at, self.read_step = time.perf_counter(), self.first

    def run(self) -> None:
        options, team = self.recipe.run, self.team
        validation = round(options.validate * len(self.batches.photos) / self.batches.batch)
        self.listener.begin(self.first, self.total)
        loads = self.batches.loads(self.recipe.augment, self.first, self.total, team.share(self.batches.batch))
        self.read_at = time.perf_counter()
        with StopSignals() as signals, closing(loads):
            for step, load in enumerate(loads, self.first):
                self._step(step, load)
                done = step + 1
                self.listener.advance(done)
                last = done == self.total
                logs, saves = done % options.log == 0, done % options.checkpoint == 0
                validates = last or (validation > 0 and done % validation == 0)
                # Processes receive a signal at different steps: they agree at a step where they meet anyway.
                stops = team.any(signals.raised) if team.size == 1 or logs or last else False
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

    def _step(self, step: int, load: Load) -> None:
        """One step of the optimizer: forward and backward over this process's part, in ``accumulate`` passes."""
        torch.manual_seed(mix_seed(self.recipe.run.seed, step, self.team.rank))
        asked, passes = self.recipe.optimization, self.recipe.optimization.accumulate
        for number in range(passes):
            rows = part(slice(0, len(load.draw)), number, passes)
            images = rows.stop - rows.start
            drawn = load.draw[rows]
            pixels = apply(load.photos[rows], load.aspects[rows], drawn, self.recipe.data.size, asked.compile)
            batch = Batch(pixels, load.labels[rows], drawn, step)
            waits = isinstance(self.network, DistributedDataParallel) and number < passes - 1
            with self.network.no_sync() if waits else nullcontext():  # type: ignore[operator]
                with self._autocast():
                    loss, figures = self.task.loss(self.network, batch)
                # Gradients are averaged over processes; with this weight the result is the mean over the global batch.
                (loss * (images * self.team.size / self.batches.batch)).backward()
            self.meter.add({"loss": loss, **figures}, images)
        self.meter.end_step(self.state.update(self.schedule(step), step, asked.clip))

    def _log(self, done: int) -> None:
        """Read the metrics since the last time; only this waits for the device."""
        if done == self.read_step:
            return
        means, skipped, longest = self.meter.read()
        now = time.perf_counter()
        speed = (done - self.read_step) * self.batches.batch / max(now - self.read_at, 1e-9)
        self.read_at, self.read_step = now, done
        figures = {**means, "lr": self.schedule(done - 1), "epoch": round(self.batches.epoch(done), 4),
                   "images_per_second": round(speed, 1)}
        self.journal.write("train", done, {**figures, "skipped": skipped} if skipped else figures)
        if skipped:
            self.listener.say(f"skipped {skipped} steps before step {done}: their gradients were not finite")
        if longest >= self.recipe.run.patience:
            steps = self.checkpoints.steps()
            kept = f"the checkpoint of step {steps[-1]} is good" if steps else "there is no checkpoint yet"
            raise TrainingError(f"gradients were not finite in {longest} steps in a row, to step {done}; {kept}: lower "
                                "optimization.lr, use precision fp32, or check the photos, and resume in a new folder")

    def _validate(self, done: int) -> None:
        module = self.task.module.eval()
        with self.state.averaged(), self._autocast():
            figures = self.task.validate(self.team)
        module.train()
        if figures:
            self.journal.write("validation", done, {"epoch": round(self.batches.epoch(done), 4), **figures})

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.team.device.type, torch.bfloat16, self.recipe.optimization.precision == "bf16")

    def _resume(self) -> int:
        """Restore the last checkpoint in every process, and return its step; the first process reads it."""
        step = 0
        if self.team.first:
            saved = self.checkpoints.load()
            if saved is not None:
                for key, what in (("photos", "on other photos, fingerprint"), ("total", "of another length, steps")):
                    if saved.about.get(key) != self.about[key]:
                        raise TrainingError(f"{self.checkpoints.folder} is of a run {what} {saved.about.get(key)}, now "
                                            f"{self.about[key]}; choose another folder, or --fresh --force")
                self.state.restore(saved.tensors)
                step = saved.step
        step = self.team.number(step)
        if step:
            self.team.agree(self.state.tensors().values())
        return step


def _last_figures(folder: Path) -> dict[str, float]:
    lines = [line for line in read_metrics(folder) if line.get("kind") == "validation"]
    return {key: value for key, value in lines[-1].items() if key not in ("kind", "step")} if lines else {}
