"""What removes bright patches of bare wall from flow: the share of a map outside the object, and the pointing game.

    python benchmarks/pointing.py [--model NAME|FOLDER] [--device cuda] [--first 200] [--limit N] [--method NAME]…

ECSSD, whole images, shorter side 224. Flow of all layers is the paper's; the rows below leave out the last ones.
"No map" gives every pixel the same value. Choices were made on the first 200 images; the others are printed apart.
Only methods of a few passes are in the table by default; --method adds token_rise and the like.
"""

from statistics import fmean

import torch
from provenance import arguments, launch, print_provenance

import spit
from spit.attribution import Flow, Method, create_method
from spit.evaluation.masks import find_samples, read_pair
from spit.evaluation.samples import spread

TUNED_ON = 200
SIDE = 224
METHODS: dict[str, Method] = {
    "flow, all layers": Flow(skip=0), **{f"flow without the last {skip}": Flow(skip=skip) for skip in (1, 2, 3, 4)},
    "rollout": create_method("rollout"), "relevance": create_method("relevance"), "random": create_method("random"),
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", default="spit_tiny_16", help="a name, a folder or a file of weights")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--limit", type=int, help="only so many images, spread over the set")
    parser.add_argument("--first", type=int, help="only the first so many images")
    parser.add_argument("--method", action="append", default=[], help="further methods")
    args = parser.parse_args()
    samples = find_samples(args.shared / "data" / "ecssd")[: args.first]
    tuned = {sample.name for sample in samples[:TUNED_ON]}
    samples = spread(samples, args.limit)
    methods = METHODS | {name: create_method(name) for name in args.method}
    predictor = spit.load(args.model, args.device)
    print_provenance(f"ECSSD, {len(samples)} images, shorter side {SIDE}; {predictor.name}", seed=0)
    found: dict[str, list[tuple[str, float, float]]] = {name: [] for name in ("no map", *methods)}
    for sample in samples:
        image, truth = read_pair(sample)
        prediction = predictor(image, crop=False, size=SIDE)
        mask = torch.from_numpy(truth.foreground)[None]
        maps = {"no map": torch.ones(mask.shape)} | {
            name: prediction.explain(method).cpu() for name, method in methods.items()}
        for name, values in maps.items():
            found[name].append((sample.name, share_outside(values, mask), points_at(values, mask)))
    sets = {f"first {TUNED_ON}": [sample.name in tuned for sample in samples]}
    sets["others"] = [not own for own in sets[f"first {TUNED_ON}"]]
    sets = {name: chosen for name, chosen in sets.items() if any(chosen)}
    print("| map | " + " | ".join(f"{name}: outside ↓ | pointing ↑" for name in sets) + " |")
    print("|---|" + "---:|---:|" * len(sets))
    for name, rows in found.items():
        cells = []
        for chosen in sets.values():
            own = [row for row, used in zip(rows, chosen, strict=True) if used]
            cells += [f"{fmean(row[1] for row in own):.3f}", f"{fmean(row[2] for row in own):.3f}"]
        print(f"| {name} | {' | '.join(cells)} |")


def points_at(values: torch.Tensor, mask: torch.Tensor) -> float:
    """How much of the brightest token lies on the object: 1 for a hit, 0 for a miss.

    The brightest pixels of a map over tokens are those of a whole token, so there is no tolerance of 15 pixels as in
    the original (Zhang et al., 2018), which points at one.
    """
    brightest = values == values.max()
    return float((brightest & mask).sum() / brightest.sum())


def share_outside(values: torch.Tensor, mask: torch.Tensor) -> float:
    """The share of a map's positive values on pixels outside the object; that of the pixels if it has none."""
    positive = values.double().clamp(min=0)
    positive = positive if bool(positive.any()) else torch.ones_like(positive)
    return float((positive * ~mask).sum() / positive.sum())


if __name__ == "__main__":
    launch(main)
