"""Superpixel methods over a set of images, at equal counts of regions.

Counts are compared by the logarithm of their ratio.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import distributions
from math import log
from pathlib import Path
from statistics import fmean, median
from typing import Any, ClassVar

from comparison.methods import Method
from comparison.summary import COLUMNS, Row, draw_comparison, missed, ranked, summarize
from comparison.workers import Spread, Task, count, count_pixels, measure, open_workers
from spit.documents import Sheet
from spit.errors import SpitError
from spit.evaluation.runner import Case, Protocol, Record, Runner
from spit.evaluation.samples import Sample, spread
from spit.wording import plural

FEW = 8  # images to calibrate on
TRIES = 7  # parameters to calibrate by
CLOSE = 0.04  # near enough on a few images; a second setting corrects the rest
MIXABLE = 0.25  # above the wanted count, but better than any below
SETTLED = 0.01  # how far the mean count may be from the wanted one
REACH = 0.6  # from how far it is brought there
STEP = (0.06, 0.4)  # how far the second setting is from the first, if the mean is not further off
FEWEST_PIXELS = 16  # of a region on average; with smaller ones some methods take minutes, or all memory
PACKAGES = ("spit", "numpy", "scikit-image", "opencv-contrib-python-headless")


@dataclass(frozen=True)
class MethodCase(Case):
    """A method with its parameter, in processes; ``work`` is :func:`measure`, or :func:`count` for regions alone."""

    method: Method
    parameter: float
    work: Callable[[Task], Record]
    workers: Spread
    name: str

    def config(self) -> dict[str, Any]:
        return {"method": self.method.name, "parameter": self.parameter, "work": self.work.__name__,
                "versions": versions()}

    def measure(self, samples: Sequence[Sample], runner: Runner) -> Generator[list[Record]]:
        tasks: list[Task] = [(sample, self.method.name, self.parameter) for sample in samples]
        with closing(self.workers(self.work, tasks)) as found:  # stopping early cancels the rest
            for sample, record in zip(samples, found, strict=True):
                yield [{"key": sample.key, "image": sample.name, "method": self.method.name, **record}]


class Comparison(Protocol):
    """Every method at every count.

    The parameter of each is calibrated on eight images spread over the set, see :func:`calibrate`, then all images are
    measured. If the mean count misses the wanted one by more than 1 %, some images are measured at a second setting,
    coarser or finer, in an order spread over the set, until the mean is at most the wanted count and as near to it as
    possible. The second setting is chosen so that a third of the images suffices if the miss is small. A method whose
    counts jump stays where it is: the row has the count.
    """

    title = "Superpixels compared"
    plots = True
    notes: ClassVar[str] = """\
Regions are 4-connected: a label whose pixels lie apart counts as often as it has pieces, and all figures are of \
these regions. R² is the explained variation of RGB; ASA, undersegmentation error (Neubert and Protzel) and boundary \
recall are means over all human segmentations of an image; "connected" is the share of images on which every label \
was one region already. Time is the median over images of the method alone, on one thread. The last column has the \
one parameter that was set to reach the count, with the number of images at each value if there are two."""

    def __init__(self, data: Path, samples: Sequence[Sample], methods: Sequence[Method], counts: Sequence[int],
                 workers: int = 2) -> None:
        super().__init__(data, samples)
        self.methods, self.counts, self.workers = methods, sorted(set(counts)), workers

    @property
    def total(self) -> int:
        return len(self.samples) * len(self.methods) * len(self.counts)

    def about(self) -> dict[str, Any]:
        return {"versions": {name: found for name, found in versions().items() if found is not None}}

    def rows(self, runner: Runner) -> list[Row]:
        rows = []
        with open_workers(self.workers) as workers:
            runner.say("reading")
            pixels = round(median(workers(count_pixels, self.samples)))
            if self.counts[-1] > pixels // FEWEST_PIXELS:
                raise SpitError(f"expected counts of at most {pixels // FEWEST_PIXELS}, {FEWEST_PIXELS} pixels a "
                                f"region, on images of {pixels} pixels, got {self.counts[-1]}; ask for fewer regions")
            for method in self.methods:
                drift = 1.0  # ratio of the parameter at the count before to its guess
                for wanted in self.counts:
                    row, parameter = self._row(runner, workers, method, wanted, pixels, drift)
                    rows.append(row)
                    drift = parameter / method.guess(wanted, pixels)
        return rows

    def _row(self, runner: Runner, workers: Spread, method: Method, wanted: int, pixels: int,
             drift: float) -> tuple[Row, float]:
        """One method at one count, and the parameter that it was calibrated to."""
        title = f"{method.title} at {wanted}"

        def mean_count(parameter: float) -> float:
            case = MethodCase(method, parameter, count, workers, title)
            return fmean(record["regions"] for record in runner.stream(case, spread(self.samples, FEW), counted=False))

        runner.say(f"{title}: calibrating")
        parameter = calibrate(method, wanted, pixels, mean_count, drift)
        records = runner.answers(MethodCase(method, parameter, measure, workers, title), self.samples)
        runner.say(f"{title}: settling the count")
        other = second_parameter(method, wanted, parameter, records)
        if other is not None:
            golden = 0.6180339887498949  # its multiples spread every beginning of the order over the whole set
            order = sorted(range(len(records)), key=lambda place: place * golden % 1)
            case = MethodCase(method, other, measure, workers, title)
            with closing(runner.stream(case, [self.samples[place] for place in order], counted=False)) as others:
                settle(wanted, records, order, others)
        return summarize(method, wanted, records), parameter

    def sheets(self, rows: Sequence[Row]) -> list[Sheet]:
        """A table for each count, the best R² first."""
        headings = ["method", *(heading for heading, _ in COLUMNS.values()), "setting"]
        sheets = []
        for wanted in self.counts:
            chosen = ranked(rows, wanted)
            title = "; ".join([f"About {wanted} regions", *missed(chosen)])
            sheets.append(Sheet(headings, [row.cells() for row in chosen], title=title,
                                marked=[index for index, row in enumerate(chosen) if row.ours]))
        return sheets

    def pictures(self, rows: Sequence[Row]) -> dict[str, bytes]:
        span = " to ".join(str(wanted) for wanted in dict.fromkeys((self.counts[0], self.counts[-1])))
        title = f"Superpixels on {plural(len(self.samples), 'image')} of {self.data.resolve().name}, {span} regions"
        return {"curves.png": draw_comparison(rows, title)}


def calibrate(method: Method, wanted: int, pixels: int, mean_count: Callable[[float], float],
              drift: float = 1.0) -> float:
    """The parameter whose mean count on a few images is closest to the one wanted.

    A search in log-log space, where counts are nearly straight lines: along the method's slope until the count is
    bracketed, then by the secant within the bracket. It ends within 4 %, or when no parameter is left between. If a
    method has no count near, the closest below is taken.

    Args:
        pixels: of an image, about.
        mean_count: parameter → mean count of 4-connected regions.
        drift: factor on the method's own guess.
    """
    tried: dict[float, float] = {}  # parameter → log(count / wanted)
    parameter = method.near(drift * method.guess(wanted, pixels))
    while len(tried) < TRIES and parameter not in tried:
        tried[parameter] = log(mean_count(parameter) / wanted)
        if abs(tried[parameter]) <= CLOSE:
            return parameter
        parameter = method.near(_next_parameter(method, tried))
    close = [p for p in tried if abs(tried[p]) <= MIXABLE]
    below = [p for p in tried if tried[p] <= 0]
    return min(close or below or tried, key=lambda p: abs(tried[p]))


def _next_parameter(method: Method, tried: dict[float, float]) -> float:
    above = min((p for p in tried if tried[p] > 0), key=lambda p: p * method.slope, default=None)
    below = max((p for p in tried if tried[p] <= 0), key=lambda p: p * method.slope, default=None)
    if above is not None and below is not None:
        share = -tried[below] / (tried[above] - tried[below])
        share = min(max(share, 0.15), 0.85)  # where counts jump, a secant would creep
        return float(below * (above / below) ** share)
    last = list(tried)[-1]
    stuck = len(set(tried.values())) < len(tried)  # the same count twice: a plateau
    return method.moved(last, -tried[last] * (3 if stuck else 1))


def second_parameter(method: Method, wanted: int, parameter: float, records: Sequence[Record]) -> float | None:
    """A second setting that brings the mean count nearer; None if it is near enough, or out of reach."""
    off = log(fmean(record["regions"] for record in records) / wanted)
    if not SETTLED < abs(off) <= (MIXABLE if method.jumps else REACH):
        return None
    step = min(max(3 * abs(off), STEP[0]), max(1.25 * abs(off), STEP[1]))
    return method.moved(parameter, -step if off > 0 else step)


def settle(wanted: int, records: list[Record], order: Sequence[int], others: Iterable[Record]) -> None:
    """Replace records, in this order, by those at a second setting, until the mean count is right."""
    excess = sum(record["regions"] - wanted for record in records)
    finer = excess <= 0
    for place, record in zip(order, others, strict=False):
        excess += record["regions"] - records[place]["regions"]
        if finer and excess > 0:
            return
        records[place] = record
        if not finer and excess <= 0:
            return


def versions() -> dict[str, str | None]:
    """The packages that the figures depend on; None if one is not installed."""
    return {package: next((found.version for found in distributions(name=package)), None) for package in PACKAGES}
