"""Methods over a set of images, at equal counts of regions."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from math import log
from pathlib import Path
from statistics import fmean, median

from spit.evaluation.lines import Lines, Record, case_of
from spit.evaluation.superpixels.calibration import MIXABLE, calibrate
from spit.evaluation.superpixels.data import Sample, spread
from spit.evaluation.superpixels.methods import Method
from spit.evaluation.superpixels.summary import Row, summarize
from spit.evaluation.superpixels.workers import Spread, Task, check, count, measure, open_workers

FEW = 8  # images to calibrate on
# In log counts:
SETTLED = 0.01  # how far the mean count may be from the one wanted
REACH = 0.6  # from how far it is brought there
STEP = (0.06, 0.4)  # how far the second setting is from the first, unless the mean is further off

Progress = Callable[[str, int, int], None]


def evaluate(samples: Sequence[Sample], methods: Sequence[Method], counts: Sequence[int], workers: int = 2,
             journal: Path | None = None, progress: Progress = lambda *_: None) -> list[Row]:
    """Measure every method at every count.

    For each: :func:`calibrate` its parameter on eight images spread over the set, then measure all images.
    Where the mean count misses the wanted one by more than 1 %, images are measured again at a second
    setting, coarser or finer, in an order spread over the set, until the mean is at most the wanted count
    and as near to it as can be had. The second setting is chosen so that a third of the images will do
    where the miss is small. A method whose counts jump stays where it is: the row tells the count.

    Args:
        workers: processes; 0 is this one.
        journal: a file of measurements to add to, and to take up where an earlier run was stopped.
        progress: called with what is being done, measurements made, and measurements in all.

    Raises:
        SpitError: a file or an extra is missing or damaged, or a peer fails on an image.
    """
    cases = {(method.name, wanted): case_of(method=method.name, wanted=wanted, names=_names(samples), **versions())
             for method in methods for wanted in counts}
    total = len(cases) * len(samples)
    with Lines(journal) as book, open_workers(workers) as spread_out:
        done = sum(len(book.records(case)) for case in cases.values())
        progress("reading", done, total)
        pixels = round(median(spread_out(check, samples)))
        for method in methods:
            drift = 1.0  # how far off the guess was at the count before
            for wanted in counts:
                case, name = cases[method.name, wanted], f"{method.title} at {wanted}"
                first = next(iter(book.records(case).values()), None)
                if first is not None:
                    parameter = first["base"]
                else:
                    progress(f"{name}: calibrating", done, total)
                    parameter = calibrate(method, wanted, pixels, _mean_count(method, samples, spread_out), drift)
                drift = parameter / method.guess(wanted, pixels)
                missing = [sample for sample in samples if sample.name not in book.records(case)]
                for record in _measured(missing, method, parameter, parameter, spread_out):
                    book.add(case, [record])
                    done += 1
                    progress(name, done, total)
                progress(f"{name}: settling the count", done, total)
                _settle(samples, method, wanted, parameter, book, case, spread_out)
        return [summarize(method, wanted, list(book.records(cases[method.name, wanted]).values()))
                for method in methods for wanted in counts]


def _settle(samples: Sequence[Sample], method: Method, wanted: int, base: float, book: Lines, case: str,
            spread_out: Spread) -> None:
    """Measure some images again at a second setting, until the mean count is right."""
    records = book.records(case)
    excess = sum(record["regions"] - wanted for record in records.values())
    off = log(1 + excess / (wanted * len(records)))
    other = next((record["parameter"] for record in records.values() if record["parameter"] != base), None)
    if other is None and not SETTLED < abs(off) <= (MIXABLE if method.jumps else REACH):
        return
    if other is None:
        step = min(max(3 * abs(off), STEP[0]), max(1.25 * abs(off), STEP[1]))
        other = method.moved(base, -step if off > 0 else step)
    finer = (other - base) * method.slope > 0
    if not finer and excess <= 0:
        return
    todo = [sample for sample in _scattered(samples) if records[sample.name]["parameter"] == base]
    for record in _measured(todo, method, other, base, spread_out):
        excess += record["regions"] - records[record["image"]]["regions"]
        if finer and excess > 0:
            return
        book.add(case, [record])
        if not finer and excess <= 0:
            return


def _measured(samples: Sequence[Sample], method: Method, parameter: float, base: float,
              spread_out: Spread) -> Iterator[Record]:
    """Records at a parameter; each tells the one that most images have."""
    tasks: list[Task] = [(sample, method.name, parameter) for sample in samples]
    with closing(spread_out(measure, tasks)) as answers:  # stopping early cancels the rest
        yield from ({**answer, "base": base} for answer in answers)


def _mean_count(method: Method, samples: Sequence[Sample], spread_out: Spread) -> Callable[[float], float]:
    few = spread(list(samples), FEW)
    return lambda parameter: fmean(spread_out(count, [(sample, method.name, parameter) for sample in few]))


def _scattered(samples: Sequence[Sample]) -> list[Sample]:
    """Every beginning of this order is spread over the whole set."""
    golden = 0.6180339887498949
    return [samples[i] for i in sorted(range(len(samples)), key=lambda i: i * golden % 1)]


def _names(samples: Sequence[Sample]) -> str:
    """One short word for the images and truths of a run."""
    names = "\n".join(f"{sample.name} {[path.name for path in sample.truths]}" for sample in samples)
    return hashlib.sha256(names.encode()).hexdigest()[:16]


def versions() -> dict[str, str | None]:
    """The packages that the figures depend on; None where one is not installed."""
    found: dict[str, str | None] = {}
    for package in ("spit", "numpy", "scikit-image", "opencv-contrib-python-headless"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found
