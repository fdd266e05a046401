"""Unsupervised saliency on ECSSD: what each choice of the cut is worth, and the final figures.

    python benchmarks/saliency.py [--model NAME|FOLDER]… [--device cuda] [--first 200] [--every 1] [--output FOLDER]
    python benchmarks/saliency.py --final --model spit_tiny_16 --output FOLDER
    python benchmarks/saliency.py --solvers

Choices are compared on the first 200 images alone, one changed at a time from the defaults: what is cut (final
tokens or keys, and of which layer), τ, the rule for the foreground, the levels and sweeps of superpixels, and the
size that the model sees. ``--final`` runs the defaults on all 1,000 images, beside the parent
on square patches with the same defaults and under TokenCut (its rule; keys and final features; its own τ and the
paper's), and prints the figures of the 800 images that nothing was chosen on by themselves. For one model that is
6,000 cuts: 10 minutes of one CPU thread. ``--solvers`` times the eigenproblem instead.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import torch
from provenance import launch, load_models, model_arguments, open_runner, print_provenance

import spit
from spit.answers import Segment
from spit.evaluation.masks import find_samples
from spit.evaluation.saliency import TOKENCUT, Saliency, SaliencyCase
from spit.segmentation.head import head_for
from spit.segmentation.lanczos import leading_vectors

TUNED_ON = 200
CUTS: dict[str, list[Any]] = {
    "method": ["head", "cut"],
    "cut_on": ["keys"],
    "layer": [-2, -3, -4],
    "tau": [None, 0.2, 1 / 3, 0.4, 0.5],
    "foreground": ["border", "class_token", "largest"],
}
SIZES = (224, 448)
TOKENIZERS: list[dict[str, Any]] = [{"levels": 3}, {"levels": 5}, {"refine": 3}, {"compactness": 0.4},
                                    {"compactness": 0.0, "self_loop": "clipped"}]
PARENT_CUTS = [cut.replace(tau=tau) for tau in (0.2, 1 / 3) for cut in TOKENCUT]


def main() -> None:
    parser = model_arguments(__doc__)
    parser.add_argument("--first", type=int, default=TUNED_ON, help="images that choices are compared on")
    parser.add_argument("--every", type=int, default=1, help="only every so-many-th of them")
    parser.add_argument("--foreground", default=Segment().foreground, help="the rule beside which others are tried")
    parser.add_argument("--only", action="append", help=f"of {', '.join(CUTS)}, size, tokenizer")
    parser.add_argument("--final", action="store_true", help="the defaults on all images instead")
    parser.add_argument("--solvers", action="store_true", help="time the eigenproblem instead")
    args = parser.parse_args()
    if args.solvers:
        print_provenance("random graphs of two clusters", seed=0)
        time_solvers("cuda" if args.device != "cpu" and torch.cuda.is_available() else "cpu")
        return
    data = args.shared / "data" / "ecssd"
    samples = find_samples(data)
    if not args.final:
        samples = samples[: args.first : args.every]
    print_provenance(f"ECSSD, {len(samples)} images" + ("" if args.final else f", every {args.every}. of the first "
                                                                             f"{args.first}"))
    models = load_models(args)
    if args.final:
        cases = [SaliencyCase(model, Segment(foreground=args.foreground, merge=False)) for model in models]
        parent = spit.Predictor(models[-1].model, "parent under TokenCut")
        cases += [SaliencyCase(parent, cut) for cut in PARENT_CUTS]
    else:
        cases = [case for model in models for case in _choices(model, args)]
    start = time.perf_counter()
    with open_runner(args.output, args.batch) as runner:
        print(runner.evaluate(Saliency(data, samples, cases)).markdown())
        if args.final:
            print(f"Of those, the {len(samples) - TUNED_ON} that nothing was chosen on:\n")
            print(runner.evaluate(Saliency(data, samples[TUNED_ON:], cases)).markdown())
    print(f"{time.perf_counter() - start:.0f} s in all")


def _choices(model: spit.Predictor, args: argparse.Namespace) -> Iterator[SaliencyCase]:
    """The defaults, and each choice changed by itself."""
    base, superpixels = Segment(foreground=args.foreground, merge=False), model.model.config.tokenizer == "superpixel"

    def wanted(name: str) -> bool:
        return args.only is None or name in args.only

    yield SaliencyCase(model, base)
    for name, values in CUTS.items():
        possible = name != "method" or head_for(model, None) is not None
        if wanted(name) and possible:
            yield from (SaliencyCase(model, base.replace(**{name: value})) for value in values
                        if value != getattr(base, name))
    if wanted("size"):
        yield from (SaliencyCase(model, base.replace(size=size)) for size in SIZES)
    if wanted("tokenizer") and superpixels:
        for options in TOKENIZERS:
            changed = model.with_tokenizer("superpixel", **options)
            changed.name = f"{model.name} ({', '.join(f'{key} {value}' for key, value in options.items())})"
            yield SaliencyCase(changed, base)


def time_solvers(device: str, repeats: int = 7) -> None:
    """Milliseconds for the Fiedler vector of one graph, and a graph's share of a batch of 32; one CPU thread."""
    torch.set_num_threads(1)  # so small a problem gains nothing by more, and loses where cores are shared
    print("| tokens | Lanczos | dense eigh | LOBPCG | Lanczos, per graph in a batch of 32 | agreement |")
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
    launch(main)
