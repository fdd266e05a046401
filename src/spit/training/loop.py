"""The loop: any :class:`~spit.training.task.Task` over any :class:`~spit.training.batches.Batches`.

    batches = Batches(Photos(folders, side=256), batch=512, seed=0, device=team.device, resident=True)
    outcome = fit(task, batches, Path("runs/mine"), team, size=224, augment=AugmentConfig(),
                  optimization=Optimization(epochs=30, lr=1e-3), run=RunRecipe(checkpoint=500))

A step is a function of (seed, step) and of the weights before it: photos, augmentation and dropout are seeded
by them anew each time. So a run that was killed goes on from its last checkpoint as if nothing had
happened, and on a CPU ends with the same bits. A folder with a run in it is continued; the figures of
every step are in ``metrics.jsonl`` once.

On a GPU nothing in a step waits for the device: figures are summed there and read every ``run.log`` steps,
and a step whose gradients are no numbers is left out by the optimizer itself.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from spit import weights
from spit.tokens import plural
from spit.training.augment import AugmentConfig, apply
from spit.training.batches import Batches, Load, mix_seed
from spit.training.checkpoint import Checkpoints
from spit.training.distributed import Team, part
from spit.training.errors import Stopped, TrainingError
from spit.training.journal import Journal, Listener, Silent, read_metrics
from spit.training.meter import Meter
from spit.training.recipe import Optimization, RunRecipe
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
        resumed: the step that this process began with.
        seconds: of this process.
        figures: the last validation's.
        model: the folder that :func:`spit.load_model` reads.
    """

    steps: int
    resumed: int
    seconds: float
    figures: Mapping[str, float]
    model: Path


@dataclass
class _Run:
    """What the parts of a run share."""

    task: Task
    network: nn.Module
    state: State
    batches: Batches
    team: Team
    size: int
    augment: AugmentConfig
    optimization: Optimization
    options: RunRecipe
    schedule: Schedule
    checkpoints: Checkpoints
    journal: Journal
    listener: Listener
    about: Mapping[str, Any]
    meter: Meter = field(init=False)
    read_at: float = field(default_factory=time.perf_counter)
    read_step: int = 0

    def __post_init__(self) -> None:
        self.meter = Meter(self.team)


def fit(task: Task, batches: Batches, folder: Path, team: Team, *, size: int,
        augment: AugmentConfig, optimization: Optimization, run: RunRecipe, about: Mapping[str, Any] | None = None,
        listener: Listener | None = None) -> Outcome:
    """Train a task to its end, from wherever an earlier process left it.

    Args:
        folder: of the run: checkpoints, ``metrics.jsonl``, and at the end the model.
        team: the processes; one folder serves them all, and only the first one touches it.
        size: side of the square that the network sees.
        about: written into every checkpoint, as JSON.
        listener: is told how it goes.

    Raises:
        Stopped: SIGTERM or Ctrl-C; a checkpoint was written.
        TrainingError: the disk is full, every checkpoint is damaged or another run's, or gradients were
            no numbers ``run.patience`` times in a row.
        ValueError: a batch too small for so many processes and passes.
    """
    began = time.perf_counter()
    if batches.batch // 2 < team.size * optimization.accumulate:
        raise ValueError(f"expected a batch of at least 2 photos for each of {team.size} processes and "
                         f"{optimization.accumulate} passes, got {batches.batch}; enlarge the batch")
    listener = listener if listener is not None and team.first else Silent()
    total = batches.steps(optimization.epochs)
    if len(batches.photos) < batches.batch:
        listener.say(f"{plural(len(batches.photos), 'photo')} for batches of {batches.batch}: {plural(total, 'step')} "
                     "in all; a smaller optimization.batch makes more")
    module = task.module.to(team.device).train()
    state = State(module, task.groups(), optimization.betas, optimization.eps, optimization.weight_decay,
                  optimization.ema)
    checkpoints = Checkpoints(folder / CHECKPOINTS)
    about = {**(about or {}), "total": total, "photos": batches.photos.fingerprint()}
    if team.number(int(about["photos"], 16) >> 1) != int(about["photos"], 16) >> 1:
        raise TrainingError(f"process {team.rank} has other photos than the first one; every machine needs the same")
    first = _resume(state, checkpoints, team, about)
    if first:
        listener.say(f"going on from step {first} of {total}")
    warmup = round(optimization.warmup * len(batches.photos) / batches.batch)
    schedule = Schedule(optimization.warmup_lr, optimization.lr, optimization.min_lr, min(warmup, total), total)
    journal = Journal(folder if team.first else None, first, listener)
    state_of_run = _Run(task, team.wrap(module), state, batches, team, size, augment, optimization, run, schedule,
                        checkpoints, journal, listener, about)
    try:
        if first < total:
            _train(state_of_run, first, total)
        with state.averaged():
            if team.first:
                weights.save(task.product(), folder / MODEL)
    finally:
        journal.close()
    figures = _last_figures(folder) if team.first else {}
    return Outcome(total, first, time.perf_counter() - began, figures, folder / MODEL)


def _train(run: _Run, first: int, total: int) -> None:
    validation = round(run.options.validate * len(run.batches.photos) / run.batches.batch)
    run.listener.begin(first, total)
    run.read_at, run.read_step = time.perf_counter(), first
    rows = run.team.share(run.batches.batch)
    loads = run.batches.loads(run.augment, first, total, rows)
    with StopSignals() as signals, closing(loads):
        for step, load in enumerate(loads, first):
            _step(run, step, load)
            done = step + 1
            run.listener.advance(done)
            last = done == total
            logs, saves = done % run.options.log == 0, done % run.options.checkpoint == 0
            validates = last or (validation > 0 and done % validation == 0)
            # Many processes hear of a signal at different steps: they agree where they meet anyway.
            stops = run.team.any(signals.raised) if run.team.size == 1 or logs or last else False
            if logs or saves or validates or stops:
                _log(run, done)
            if validates:
                _validate(run, done)
            if saves or last or stops:
                _save(run, done)
            if stops and not last:
                raise Stopped(f"stopped at step {done} of {total}, and saved; run the same command to go on")


def _step(run: _Run, step: int, load: Load) -> None:
    """One step of the optimizer: forward and backward over this process's part, in as many passes as asked."""
    torch.manual_seed(mix_seed(run.options.seed, step, run.team.rank))
    bf16 = run.optimization.precision == "bf16"
    passes = run.optimization.accumulate
    for number in range(passes):
        rows = part(slice(0, len(load.draw)), number, passes)
        images = rows.stop - rows.start
        drawn = load.draw[rows]
        pixels = apply(load.photos[rows], load.aspects[rows], drawn, run.size, compiled=run.optimization.compile)
        batch = Batch(pixels, load.labels[rows], drawn, step)
        with _unsynced(run.network) if number < passes - 1 else nullcontext():
            with torch.autocast(run.team.device.type, torch.bfloat16, enabled=bf16):
                loss, figures = run.task.loss(run.network, batch)
            # Gradients are averaged over processes: weighed so, their sum is the mean over the global batch.
            (loss * (images * run.team.size / run.batches.batch)).backward()
        run.meter.add({"loss": loss, **figures}, images)
    good = run.state.update(run.schedule(step), step, run.optimization.clip)
    run.meter.end_step(good)


def _log(run: _Run, done: int) -> None:
    """Read the figures since the last time; the one moment that waits for the device."""
    if done == run.read_step:
        return
    means, skipped, longest = run.meter.read()
    now = time.perf_counter()
    speed = (done - run.read_step) * run.batches.batch / max(now - run.read_at, 1e-9)
    run.read_at, run.read_step = now, done
    figures = {**means, "lr": run.schedule(done - 1), "epoch": round(run.batches.epoch(done), 4),
               "images_per_second": round(speed, 1)}
    run.journal.write("train", done, {**figures, "skipped": skipped} if skipped else figures)
    if skipped:
        run.listener.say(f"{skipped} steps before step {done} were left out: their gradients were no numbers")
    if longest >= run.options.patience:
        steps = run.checkpoints.steps()
        kept = f"the checkpoint of step {steps[-1]} is good" if steps else "there is no checkpoint yet"
        raise TrainingError(f"gradients were no numbers in {longest} steps in a row, to step {done}; {kept}: lower "
                            "optimization.lr, use precision fp32, or look at the photos, and go on in a new folder")


def _validate(run: _Run, done: int) -> None:
    began = time.perf_counter()
    module = run.task.module.eval()
    with run.state.averaged(), torch.autocast(run.team.device.type, torch.bfloat16,
                                              enabled=run.optimization.precision == "bf16"):
        figures = run.task.validate(run.team)
    module.train()
    if figures:
        run.journal.write("validation", done, {"epoch": round(run.batches.epoch(done), 4), **figures})
    run.read_at += time.perf_counter() - began  # training's speed is training's


def _save(run: _Run, done: int) -> None:
    began = time.perf_counter()
    if run.team.first:
        run.checkpoints.save(done, run.state.tensors(), run.about)
    run.read_at += time.perf_counter() - began


def _resume(state: State, checkpoints: Checkpoints, team: Team, about: Mapping[str, Any]) -> int:
    """Put the last checkpoint in place, in every process; the first one reads it. The step to go on with."""
    step = 0
    if team.first:
        saved = checkpoints.load()
        if saved is not None:
            for key, what in (("photos", "on other photos, fingerprint"), ("total", "of another length, steps")):
                if saved.about.get(key) != about[key]:
                    raise TrainingError(f"{checkpoints.folder} is of a run {what} {saved.about.get(key)}, now "
                                        f"{about[key]}; choose another folder, or --fresh --force")
            state.restore(saved.tensors)
            step = saved.step
    step = team.number(step)
    if step:
        team.agree(state.tensors().values())
    return step


@contextmanager
def _unsynced(network: nn.Module) -> Iterator[None]:
    context: AbstractContextManager[Any] = (network.no_sync() if isinstance(network, DistributedDataParallel)
                                            else nullcontext())
    with context:
        yield


def _last_figures(folder: Path) -> dict[str, float]:
    lines = [line for line in read_metrics(folder) if line.get("kind") == "validation"]
    return {key: value for key, value in lines[-1].items() if key not in ("kind", "step")} if lines else {}

