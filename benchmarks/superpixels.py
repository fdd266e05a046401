"""Superpixel methods beside each other at equal counts, against human segmentations (Table 5 of the paper).

    python benchmarks/superpixels.py [--curves]
    python benchmarks/superpixels.py --data FOLDER --algorithm spit,slic --count 300 --count 600 --output FOLDER

By default the 200 test images of BSDS500 with all human segmentations, all methods at 600 regions. --data is BSDS500
(images/ and groundTruth/), SBD (images/ and labels/NAME.regions.txt), or images/ and labels/ with label maps of the
same names: .png (each colour is a label), .npy, .npz or .mat, several for an image as NAME_1.png, NAME_2.png, … The one
parameter of each method is searched for until its mean count of 4-connected regions is the wanted one. With --output
there are results.json, curves.png and images.jsonl, from which a stopped run resumes.

Bars on BSDS500 at 600 regions: exactly 600; R² ≥ .945, ASA ≥ .962, recall ≥ .940, compactness ≥ .09, in at most 1.3
times the time that spit took before it had a tree; R², ASA and recall not below any peer's; with one sweep, a better
R² than before in less time; with compactness ≥ .35, ahead of scikit-image's SLIC, SEEDS and LSC in R², ASA and recall;
R² ≥ .88 for the paper's algorithm. --curves goes from 100 to 2,000 regions.
"""

import argparse
import json
import time
from pathlib import Path

from comparison.comparison import Comparison
from comparison.data import find_samples
from comparison.methods import METHODS, choose_methods
from comparison.summary import COLUMNS, Row, ranked
from provenance import arguments, launch, open_runner, print_provenance

from spit.evaluation.samples import spread

COUNT = 600
CURVES = (100, 200, 400, 600, 1000, 2000)
PAPER = 0.914  # SPiT in Table 5, at 595 regions
LEAST = {"explained_variation": 0.945, "achievable_accuracy": 0.962, "boundary_recall": 0.94, "compactness": 0.09}


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
    names = "spit", "spit-fast", "spit-compact", "spit-rounds", "spit-paper"
    ours, fast, compact, before, paper = (rows[name] for name in names)
    _bar("exactly 600 regions", ours.regions == fast.regions == compact.regions == COUNT,
         ", ".join(f"{row.regions:.1f}" for row in (ours, fast, compact)))
    for metric, least in LEAST.items():
        value = getattr(ours, metric)
        _bar(f"{_name(metric)} at least {least}", value >= least, f"{value:.4f}")
    _bar("at most 1.3 times the time before the tree", ours.milliseconds <= 1.3 * before.milliseconds,
         f"{ours.milliseconds / before.milliseconds:.2f} times")
    for metric in ("explained_variation", "achievable_accuracy", "boundary_recall"):
        peers = [row for name, row in rows.items() if not METHODS[name].ours]
        best, value = max(peers, key=lambda row: getattr(row, metric)), getattr(ours, metric)
        _bar(f"{_name(metric)} not below any peer's", value >= getattr(best, metric),
             f"{value:.4f} against {getattr(best, metric):.4f} of {best.title}")
    _bar("one sweep: R² above that before the tree", fast.explained_variation > before.explained_variation,
         f"{fast.explained_variation:.4f} against {before.explained_variation:.4f}")
    _bar("one sweep: less time than before the tree", fast.milliseconds < before.milliseconds,
         f"{fast.milliseconds / before.milliseconds:.2f} times")
    _bar("compact: compactness at least .35", compact.compactness >= 0.35, f"{compact.compactness:.3f}")
    for peer in (rows[name] for name in ("slic", "seeds", "lsc")):
        pairs = [(getattr(compact, metric), getattr(peer, metric)) for metric in list(LEAST)[:3]]
        _bar(f"compact: R², ASA and recall above those of {peer.title}", all(one > other for one, other in pairs),
             ", ".join(f"{one:.4f} against {other:.4f}" for one, other in pairs))
    _bar("R² of the paper's algorithm at least .88", paper.explained_variation >= 0.88,
         f"{paper.explained_variation:.4f} at {paper.regions:.0f}, {paper.explained_variation - PAPER:+.4f} from the "
         f"{PAPER} that the paper prints")


def _name(metric: str) -> str:
    return COLUMNS[metric][0].removesuffix(" ↑")


def _bar(claim: str, held: bool, measured: str) -> None:
    print(f"{'held    ' if held else 'NOT held'}  {claim}: {measured}")


if __name__ == "__main__":
    launch(main)
