"""Unsupervised saliency on ECSSD: what each choice of the cut is worth, and the final figures.

    python benchmarks/saliency.py [--model NAME|FOLDER]… [--device cuda] [--first 200] [--every 1] [--output FOLDER]
    python benchmarks/saliency.py --final --model spit_tiny_16 --output FOLDER
    python benchmarks/saliency.py --solvers

Choices are compared on the first 200 images alone, one changed at a time from the defaults: what is cut (final
tokens or keys, and of which layer), τ, the rule for the foreground, the guided filter, the levels and sweeps of
superpixels, and the size that the model sees. ``--final`` runs the defaults on all 1,000 images, beside the parent
on square patches with the same defaults and under TokenCut (its rule; keys and final features; its own τ and the
paper's), and prints the figures of the 800 images that nothing was chosen on by themselves. For one model that is
6,000 cuts: 10 minutes of one CPU thread. ``--solvers`` times the eigenproblem instead.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from provenance import arguments, print_provenance
from rich.console import Console
from rich.progress import Progress

from spit.cli.measuring import Measuring
from spit.evaluation.answers import Subject
from spit.evaluation.saliency import TOKENCUT, Contender, evaluate, sheet
from spit.evaluation.saliency_data import find_samples
from spit.segmentation.cut import Cut
from spit.segmentation.lanczos import leading_vectors

TUNED_ON = 200
CUTS: dict[str, list[Any]] = {
    "features": ["keys"],
    "layer": [-2, -3, -4],
    "tau": [None, 0.2, 1 / 3, 0.4, 0.5],
    "foreground": ["border", "class_token", "largest"],
    "size": [224, 448],
    "scales": [2],
    "refine": ["guided"],
}
TOKENIZERS: list[dict[str, Any]] = [{"levels": 3}, {"levels": 5}, {"refine": 3}, {"compactness": 0.4},
                                    {"compactness": 0.0, "self_loop": "clipped"}]
PARENT = [replace(cut, tau=tau) for tau in (0.2, 1 / 3) for cut in TOKENCUT]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", action="append", default=[], help="a name, a folder or a file; the parent always")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--batch", type=int, default=32, help="images in a batch, on a GPU")
    parser.add_argument("--first", type=int, default=TUNED_ON, help="images that choices are compared on")
    parser.add_argument("--every", type=int, default=1, help="of those, each so-manieth alone")
    parser.add_argument("--foreground", default=Cut().foreground, help="the rule that other choices are made beside")
    parser.add_argument("--only", action="append", help=f"of {', '.join(CUTS)}, tokenizer")
    parser.add_argument("--final", action="store_true", help="the defaults on all images instead")
    parser.add_argument("--solvers", action="store_true", help="time the eigenproblem instead")
    parser.add_argument("--output", type=Path, help="folder for the answers, so that a stopped run goes on")
    args = parser.parse_args()
    if args.solvers:
        print_provenance("random graphs of two clusters", seed=0)
        time_solvers("cuda" if args.device != "cpu" and torch.cuda.is_available() else "cpu")
        return
    samples = find_samples(args.shared / "data" / "ecssd")
    if args.final:
        told = f"all {len(samples)} images"
    else:
        told = f"every {args.every}. of the first {args.first} images" if args.every > 1 else (
            f"the first {args.first} images")
        samples = samples[: args.first : args.every]
    print_provenance(f"ECSSD, {told}")
    parent = str(args.shared / "weights" / "deit_tiny_patch16_224.safetensors")
    subjects = Measuring(device=args.device).load([*args.model, parent])
    if args.final:
        contenders = [Contender(subject, Cut(foreground=args.foreground)) for subject in subjects]
        contenders += [Contender(replace(subjects[-1], name="parent under TokenCut"), cut) for cut in PARENT]
    else:
        contenders = [contender for subject in subjects for contender in _choices(subject, args)]
    start = time.perf_counter()
    device = next(subjects[0].model.parameters()).device
    with tempfile.TemporaryDirectory() as folder, Progress(console=Console(stderr=True), transient=True) as bar:
        journal, task = (args.output or Path(folder)) / "images.jsonl", bar.add_task("")
        rows = evaluate(contenders, samples, journal, args.batch,
                        lambda doing, done, total: bar.update(task, description=doing, completed=done, total=total))
        print(sheet(rows, f"ECSSD, {told}; {device}.").markdown())
        if args.final:
            print(sheet(evaluate(contenders, samples[TUNED_ON:], journal),
                        f"Of those, the {len(samples) - TUNED_ON} that nothing was chosen on.").markdown())
    print(f"{time.perf_counter() - start:.0f} s in all")


def _choices(subject: Subject, args: argparse.Namespace) -> Iterator[Contender]:
    """The defaults, and each choice changed by itself."""
    base, only = Cut(foreground=args.foreground), args.only
    yield Contender(subject, base)
    for name, values in CUTS.items():
        if (only is None or name in only) and (name != "scales" or subject.model.config.tokenizer == "superpixel"):
            yield from (Contender(subject, replace(base, **{name: value})) for value in values
                        if value != getattr(base, name))
    if subject.model.config.tokenizer == "superpixel" and (only is None or "tokenizer" in only):
        for options in TOKENIZERS:
            told = ", ".join(f"{key} {value}" for key, value in options.items())
            yield Contender(replace(subject.with_tokenizer("superpixel", **options),
                                    name=f"{subject.name} ({told})"), base)


def time_solvers(device: str, repeats: int = 7) -> None:
    """Milliseconds for the Fiedler vector of one graph, and a graph's share of a batch of 32; one CPU thread."""
    torch.set_num_threads(1)  # so small a problem gains nothing by more, and loses where cores are shared
    print("| tokens | Lanczos | dense eigh | LOBPCG | Lanczos, share of 32 | agreement |")
    print("|---:|---:|---:|---:|---:|---:|")
    for size in (150, 200, 475, 1000, 2000):
        matrix, known = _graph(size, device)
        rest = matrix - known[:, None] * known  # what LOBPCG needs: it cannot be told the first vector
        guess = torch.linspace(-1, 1, size, dtype=torch.float64, device=device)[:, None]
        ways = {
            "lanczos": lambda m=matrix, k=known: leading_vectors(m[None], k[None])[0],
            "dense": lambda m=matrix: torch.linalg.eigh(m)[1][:, -2],
            "lobpcg": lambda m=rest, g=guess: torch.lobpcg(m, 1, X=g, niter=200, tol=1e-9)[1][:, 0],
        }
        many = matrix.expand(32, -1, -1).contiguous(), known.expand(32, -1).contiguous()
        times = {name: _milliseconds(way, device, repeats) for name, way in ways.items()}
        batch = _milliseconds(lambda m=many: leading_vectors(*m), device, repeats) / 32
        agreement = abs(float(ways["lanczos"]() @ ways["dense"]()))
        print(f"| {size} | {times['lanczos']:.1f} | {times['dense']:.1f} | {times['lobpcg']:.1f} | {batch:.2f} | "
              f"{agreement:.12f} |", flush=True)


def _graph(size: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A normalised affinity as the cut makes it, of two noisy clusters in 192 columns."""
    generator = torch.Generator().manual_seed(0)
    centers = torch.randn(2, 192, generator=generator, dtype=torch.float64)
    member = (torch.arange(size) < size // 3).long()
    tokens = centers[member] + 1.2 * torch.randn(size, 192, generator=generator, dtype=torch.float64)
    tokens = torch.nn.functional.normalize(tokens, dim=1)
    weights = torch.where(tokens @ tokens.T > 1 / 3, 1.0, 1e-5).double()
    degree = weights.sum(1)
    matrix = weights / degree.sqrt() / degree.sqrt()[:, None]
    return matrix.to(device), torch.nn.functional.normalize(degree.sqrt(), dim=0).to(device)


def _milliseconds(work: Any, device: str, repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):
        if device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - start))
    return sorted(times[1:])[repeats // 2]


if __name__ == "__main__":
    main()
