"""Superpixels beside every peer at equal counts (Table 5 of the paper).

    python benchmarks/superpixels.py [--curves]

The 200 test images of BSDS500, all human segmentations. Bars at 600 regions: R² ≥ .92 with refinement
and better than every peer; ≥ .88 without; refinement at most doubles the time; faster than SEEDS; all
methods within 10 minutes on 2 cores. --curves goes from 100 to 2,000 regions.
"""

import time
from pathlib import Path

from provenance import arguments, launch, open_runner, print_provenance

from spit.evaluation.samples import spread
from spit.evaluation.superpixels import METHODS, Comparison, Row, choose_methods, find_samples
from spit.evaluation.superpixels.summary import ranked

COUNT = 600
CURVES = (100, 200, 400, 600, 1000, 2000)
PAPER = 0.914  # SPiT in Table 5, at 595 regions


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--curves", action="store_true", help=f"counts {', '.join(map(str, CURVES))}")
    parser.add_argument("--limit", type=int, help="only so many images, spread over the set")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--output", type=Path, help="folder for the measurements, from which a stopped run resumes")
    args = parser.parse_args()
    data = args.shared / "data" / "bsds500"
    samples = spread(find_samples(data), args.limit)
    print_provenance(f"BSDS500 test, {len(samples)} images, every human segmentation")
    start = time.perf_counter()
    counts = CURVES if args.curves else [COUNT]
    with open_runner(args.output) as runner:
        report = runner.evaluate(Comparison(data, samples, choose_methods([]), counts, args.workers),
                                 pictures=args.output is not None)
    print(report.markdown())
    print(f"{time.perf_counter() - start:.0f} s in all on {args.workers} processes.")
    print_bars({row.method: row for row in ranked(report.rows, COUNT)})
    for name, picture in report.pictures.items():
        (args.output / name).write_bytes(picture)


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
