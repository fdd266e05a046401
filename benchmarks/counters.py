"""Hardware counters of every kernel of τ and φ: what a stage far above its floor waits for.

    ncu --clock-control none --profile-from-start off --csv --print-units base --log-file counters.csv \\
        --metrics $(python benchmarks/counters.py --metrics) python benchmarks/counters.py --images FOLDER
    python benchmarks/counters.py --table counters.csv

The second command runs τ with the default options, τ of spit_tiny_16, and φ, on 256 images of 256², once under the
counters. Per cent are of what the chip can do; a kernel that is launched several times has its mean by time.
"""

import csv
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import torch
from gpu import SEED, SHIPPED, STAGES
from provenance import arguments, launch

import spit
from spit.bench import photo_batch
from spit.bench.photos import sample_photos
from spit.data.folders import image_paths

TIME = "gpu__time_duration.sum"
METRICS = {  # in the order of the table's columns
    TIME: "ms",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issue %",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps %",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "L1 %",
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": "L2 %",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "DRAM %",
    "dram__bytes.sum": "DRAM MB",
    "lts__t_sectors_op_red.sum": "M atomics",
    "smsp__inst_executed.sum": "M instr.",
    "launch__registers_per_thread": "registers",
}
FIRST = "_look_up"  # kernel of τ
CONTRACTION = set.union(*(names for names, _ in STAGES.values()))
SCALE = {TIME: 1e-6, "dram__bytes.sum": 1e-6, "lts__t_sectors_op_red.sum": 1e-6, "smsp__inst_executed.sum": 1e-6}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", help="a folder of photos; by default scikit-image's samples")
    parser.add_argument("--metrics", action="store_true", help="print the names of the counters for ncu")
    parser.add_argument("--table", type=Path, help="print a table of what ncu has written")
    args = parser.parse_args()
    if args.metrics:
        print(",".join(METRICS))
    elif args.table:
        print_table(args.table)
    else:
        run(image_paths(args.images) if args.images else sample_photos())


def run(paths: list[Path]) -> None:
    """All kernels once, between the profiler's start and its stop."""
    if not torch.cuda.is_available():
        raise spit.SpitError("torch finds no CUDA device here; this benchmark measures one")
    import_module("spit.kernels.recording").SEEN_BEFORE = 10**9  # launches, not recordings
    images = photo_batch(paths, 256, 256, 256, SEED).cuda()
    tokenizers, extractor = (spit.SuperpixelTokenizer(), spit.SuperpixelTokenizer(**SHIPPED)), spit.FeatureExtractor()
    for round in range(2):
        if round == 1:
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
        for tokenizer in tokenizers:
            partition = tokenizer(images)
        extractor(images, partition)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def print_table(path: Path) -> None:
    launches: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    lines = [line for line in path.read_text().splitlines() if line.startswith('"')]
    for row in csv.DictReader(lines):
        if row.get("Metric Name") in METRICS:
            value = row["Metric Value"].replace(",", "")
            launches[row["Kernel Name"], row["ID"]][row["Metric Name"]] = float(value or "nan")
    kernels: dict[str, list[dict[str, float]]] = defaultdict(list)
    runs = 0
    for (name, _), values in launches.items():  # in the order of launches
        runs += name == FIRST
        kernels[f"{name.split('(')[0][:20]}{' (boxes)' if runs == 2 and name in CONTRACTION else ''}"].append(values)
    print(f"{'kernel':28s} {'launches':>8s} " + " ".join(f"{title:>9s}" for title in METRICS.values()))
    for name, each in sorted(kernels.items(), key=lambda item: -sum(one.get(TIME, 0) for one in item[1])):
        times = [one.get(TIME, 0) for one in each]
        cells = []
        for metric in METRICS:
            values = [one.get(metric, float("nan")) for one in each]
            value = sum(values) if metric.endswith(".sum") else (
                sum(v * t for v, t in zip(values, times, strict=True)) / max(sum(times), 1))
            value *= SCALE.get(metric, 1)
            cells.append(f"{value:9.3f}" if metric == TIME else f"{value:9.0f}" if value >= 10 else f"{value:9.1f}")
        print(f"{name:28s} {len(each):8d} " + " ".join(cells))


if __name__ == "__main__":
    launch(main)
