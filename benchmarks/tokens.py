"""Accuracy against tokens: how much a model loses when it sees an image in fewer of them.

    python benchmarks/tokens.py [--model NAME|FOLDER] [--images 200] [--plot tokens.png]

1,000 ImageNet validation images at 224 pixels, with the model's own tokens and with fewer by six ways: a bound on the
superpixels (``max_tokens``), a merge threshold, random drops, drops that leave tokens spread over the image, larger
Voronoi cells, and token merging inside f. Beside it the model's parent, DeiT-Tiny, by token merging. Where tokens
merge, their count falls from block to block; its mean over the blocks is what compares in cost.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from provenance import PARENT, arguments, launch, print_provenance
from torch import Tensor

import spit
from spit.data.photos import Centres, Photos
from spit.devices import choose_device, machine
from spit.drawing.plots import new_figure, png_of, tidy
from spit.evaluation.samples import spread
from spit.model import SpitModel
from spit.partition import Partition
from spit.thinning import choose_tokens, spread_tokens

SEED = 0
SIDE = 224
BATCH = 50
BUDGETS = (192, 160, 122, 96, 64, 32)
THRESHOLDS = (0.02, 0.05, 0.07, 0.1, 0.15, 0.2)
SHARES = (0.9, 0.75, 0.6, 0.5)
COLORS = {"max_tokens": "#1b7837", "merge_threshold": "#5aae61", "random drops": "#c2a5cf", "spread drops": "#762a83",
          "voronoi": "#9970ab", "merging": "#2166ac", "parent": "#000000", "parent, merging": "#d95f02"}
Choose = Callable[[Partition, int], Tensor]
Answer = Callable[[Tensor], tuple[Tensor, float, float]]
"""From images to logits, the mean tokens of a block, and those at the end."""


@dataclass(frozen=True)
class Case:
    """One row of the table; token counts are means over images."""

    way: str
    setting: str
    tokens: float
    last: float
    top1: float
    top5: float
    seconds: float


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", default="spit_tiny_16.deit_retrofit", help="a name, a folder or a file of weights")
    parser.add_argument("--images", type=int, help="only so many images, spread over the set")
    parser.add_argument("--ways", nargs="+", choices=tuple(COLORS), help="only these ways to have fewer tokens")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--plot", type=Path, help="file for a picture of the table")
    args = parser.parse_args()
    device = torch.device(choose_device(args.device))
    images, labels = load_photos(args.shared / "data" / "imagenet_val1k", args.images)
    model, parent = (spit.load_model(source).to(device).eval() for source in (args.model, args.shared / PARENT))
    print_provenance(f"imagenet_val1k, {len(images)} images at {SIDE}²; {args.model}; on {machine(device)}", SEED)
    print("| way | setting | tokens, mean of blocks | at the end | top-1 | top-5 | s |")
    print("|---|---|---:|---:|---:|---:|---:|")
    cases = []
    for way, setting, answer in ways(model, parent):
        if args.ways and way not in args.ways and setting:
            continue
        cases.append(measure(way, setting, answer, images, labels, device))
        case = cases[-1]
        print(f"| {way} | {setting or 'all tokens'} | {case.tokens:.1f} | {case.last:.1f} | {case.top1:.3f} "
              f"| {case.top5:.3f} | {case.seconds:.1f} |", flush=True)
    if args.plot:
        args.plot.write_bytes(draw(cases, f"Accuracy against tokens on {len(images)} ImageNet validation images"))
        print(f"\nThe picture is {args.plot}")


def load_photos(folder: Path, count: int | None) -> tuple[Tensor, Tensor]:
    """Central squares ``(B, 3, side, side)`` uint8 and their classes ``(B,)``."""
    photos = Photos([folder], SIDE, labelled=True)
    centres = Centres(photos)
    items = [centres[index] for index in spread(range(len(photos)), count)]
    return torch.stack([image for image, _, _ in items]), torch.tensor([label for _, _, label in items])


def ways(model: SpitModel, parent: SpitModel) -> Iterator[tuple[str, str, Answer]]:
    """Every way with its settings."""
    yield "max_tokens", "", answers_of(model)
    for budget in BUDGETS:
        yield "max_tokens", str(budget), answers_of(model.with_tokenizer("superpixel", max_tokens=budget))
    for threshold in THRESHOLDS:
        yield ("merge_threshold", str(threshold),
               answers_of(model.with_tokenizer("superpixel", merge_threshold=threshold)))
    for budget in BUDGETS:
        yield "random drops", str(budget), answers_of(model, budget)
    for budget in BUDGETS:
        yield "spread drops", str(budget), answers_of(model, budget, spread_tokens)
    for budget in BUDGETS:
        yield "voronoi", str(budget), answers_of(model.with_tokenizer("voronoi", cells=budget))
    for share in SHARES:
        yield "merging", f"share = {share}", answers_by_merging(model, share)
    yield "parent", "", answers_of(parent)
    for share in SHARES:
        yield "parent, merging", f"share = {share}", answers_by_merging(parent, share)


def answers_of(model: SpitModel, budget: int | None = None, choose: Choose | None = None) -> Answer:
    """A model that keeps at most ``budget`` tokens of an image, chosen at random by default."""

    def answer(images: Tensor) -> tuple[Tensor, float, float]:
        partition, features = model.tokenize(images)
        if budget is not None:
            kept = choose_tokens(features, [budget] * len(features)) if choose is None else choose(partition, budget)
            features = features.select(kept)
        count = len(features.values) / len(images)
        return model.run(features)[0], count, count

    return answer


def answers_by_merging(model: SpitModel, share: float) -> Answer:
    """The model with backbone "merging"; of a block, attention has the tokens before the merge, the MLP those after."""
    merging = SpitModel(model.config.replace(backbone="merging", backbone_options={"share": share}))
    merging.load_state_dict(model.state_dict())
    merging.to(model.device).eval()

    def answer(images: Tensor) -> tuple[Tensor, float, float]:
        partition, features = merging.tokenize(images)
        counts = [[count, *merging.backbone.counts(count)] for count in partition.host_counts]
        means = [(sum(each[:-1]) + sum(each[1:])) / (2 * len(each) - 2) for each in counts]
        return merging.run(features)[0], sum(means) / len(means), sum(each[-1] for each in counts) / len(counts)

    return answer


@torch.inference_mode()
def measure(way: str, setting: str, answer: Answer, images: Tensor, labels: Tensor, device: torch.device) -> Case:
    """One row: the answers to all images."""
    torch.manual_seed(SEED)
    began, tokens, last, right = time.perf_counter(), 0.0, 0.0, torch.zeros(2)
    for some, wanted in zip(images.split(BATCH), labels.split(BATCH), strict=True):
        logits, mean, end = answer(some.to(device))
        found = logits.topk(min(5, logits.shape[1])).indices.cpu() == wanted[:, None]
        right += torch.stack([found[:, 0].sum(), found.any(1).sum()])
        tokens, last = tokens + mean * len(some), last + end * len(some)
    top1, top5 = (right / len(images)).tolist()
    return Case(way, setting, tokens / len(images), last / len(images), top1, top5, time.perf_counter() - began)


def draw(cases: Sequence[Case], title: str) -> bytes:
    """Top-1 against mean tokens, a line for each way, as a PNG."""
    figure = new_figure(7, 4.5, title)
    axes = figure.subplots()
    full = next(case for case in cases if not case.setting)
    for way, color in COLORS.items():
        own = sorted((case for case in cases if case.way == way), key=lambda case: case.tokens)
        if own and not way.startswith("parent"):
            own = [case for case in own if case is not full] + [full]
        if own:
            axes.plot([case.tokens for case in own], [100 * case.top1 for case in own], "o-", color=color, label=way)
    axes.axvline(full.tokens / 2, color="#888888", linewidth=1, linestyle=":")
    axes.set_xlabel("tokens of an image, mean over blocks (dotted: half of the model's own)")
    axes.set_ylabel("top-1, %")
    axes.legend(frameon=False)
    tidy(axes)
    return png_of(figure)


if __name__ == "__main__":
    launch(main)
