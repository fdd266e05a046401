"""Superpixel methods beside each other at equal counts, against human segmentations (Table 5 of the paper).

    python benchmarks/superpixels.py [--curves]
    python benchmarks/superpixels.py --data FOLDER --algorithm spit,slic --count 300 --count 600 --output FOLDER

By default the 200 test images of BSDS500 with all human segmentations, all methods at 600 regions. --data is BSDS500
(images/ and groundTruth/), SBD (images/ and labels/NAME.regions.txt), or images/ and labels/ with label maps of the
same names: .png (each colour is a label), .npy, .npz or .mat, several for an image as NAME_1.png, NAME_2.png, … The one
parameter of each method is searched for until its mean count of 4-connected regions is the wanted one. With --output
there are results.json, curves.png and images.jsonl, from which a stopped run resumes.

Bars on BSDS500 at 600 regions: R² ≥ .92 with refinement and better than every peer; ≥ .88 without; refinement at most
doubles the time; faster than SEEDS; all methods within 10 minutes on 2 cores. --curves goes from 100 to 2,000 regions.
"""

import argparse
import json
import time
from pathlib import Path

from comparison.comparison import Comparison
from comparison.data import find_samples
from comparison.methods import METHODS, choose_methods
from comparison.summary import Row, ranked
from provenance import arguments, launch, open_runner, print_provenance

from spit.evaluation.samples import spread

COUNT = 600
CURVES = (100, 200, 400, 600, 1000, 2000)
PAPER = 0.914  # SPiT in Table 5, at 595 regions


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, help="folder of images and label maps; by default BSDS500 of --shared")
    parser.add_argument("--algorithm", action="append", default=[], help=f"of {', '.join(METHODS)}; by default all")
    parser.add_argument("--count", type=positive, action="append", help=f"mean number of regions; by default {COUNT}")
    parser.add_argument("--curves", action="store_true", help=f"counts {', '.join(map(str, CURVES))}")
    parser.add_argument("--limit", type=positive, help="only so many images, spread over the set")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each; 0 works in this one")
    parser.add_argument("--output", type=Path, help="folder for the measurements, from which a stopped run resumes")
    args = parser.parse_args()
    data = args.data or args.shared / "data" / "bsds500"
    samples = spread(find_samples(data), args.limit)
    try:
        methods = choose_methods([name for names in args.algorithm for name in names.split(",")])
    except ValueError as error:
        parser.error(str(error))
    print_provenance(f"{data}, {len(samples)} images, every human segmentation")
    start = time.perf_counter()
    counts = CURVES if args.curves else args.count or [COUNT]
    with open_runner(args.output) as runner:
        report = runner.evaluate(Comparison(data, samples, methods, counts, args.workers),
                                 pictures=args.output is not None)
    print(report.markdown())
    print(f"{time.perf_counter() - start:.0f} s in all on {args.workers} processes.")
    if args.data is None and not args.algorithm and COUNT in counts:
        print_bars({row.method: row for row in ranked(report.rows, COUNT)})
    if args.output is not None:
        (args.output / "results.json").write_text(json.dumps(report.document(), indent=2) + "\n")
        for name, picture in report.pictures.items():
            (args.output / name).write_bytes(picture)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {number}")
    return number


def print_bars(rows: dict[str, Row]) -> None:
    ours, plain, paper, seeds = (rows[name] for name in ("spit", "spit-unrefined", "spit-paper", "seeds"))
    peers = [row for name, row in rows.items() if not METHODS[name].ours]
    best = max(peers, key=lambda row: row.explained_variation)
    _bar("mean count with refinement at most 600", ours.regions <= COUNT, f"{ours.regions:.1f}")
    _bar("R² with refinement at least .92", ours.explained_variation >= 0.92, f"{ours.explained_variation:.4f}")
    _bar("R² above every peer's", ours.explained_variation > best.explained_variation,
         f"{ours.explained_variation:.4f} against {best.explained_variation:.4f} of {best.title}")
    for metric in ("achievable_accuracy", "boundary_recall"):
        best, value = max(peers, key=lambda row: getattr(row, metric)), getattr(ours, metric)
        _bar(f"{metric.replace('_', ' ')} not below any peer's", value >= getattr(best, metric),
             f"{value:.4f} against {getattr(best, metric):.4f} of {best.title}")
    _bar("R² of the paper's algorithm at least .88", paper.explained_variation >= 0.88,
         f"{paper.explained_variation:.4f} at {paper.regions:.0f}, {paper.explained_variation - PAPER:+.4f} from the "
         f"{PAPER} that the paper prints; {plain.explained_variation:.4f} joined by variance")
    _bar("refinement at most doubles the time", ours.milliseconds <= 2 * plain.milliseconds,
         f"{ours.milliseconds:.1f} ms against {plain.milliseconds:.1f}")
    _bar("faster than SEEDS", ours.milliseconds < seeds.milliseconds,
         f"{ours.milliseconds:.1f} ms against {seeds.milliseconds:.1f}")


def _bar(claim: str, held: bool, measured: str) -> None:
    print(f"{'held    ' if held else 'NOT held'}  {claim}: {measured}")


if __name__ == "__main__":
    launch(main)
