"""Accuracy against tokens: how much a model loses when it sees an image in fewer of them.

    python benchmarks/tokens.py [--model NAME|FOLDER] [--images 200] [--plot tokens.png]

1,000 ImageNet validation images at 224 pixels, with the model's own tokens and with fewer by five ways: a bound on the
superpixels (``max_tokens``), a merge threshold, random drops, drops that leave tokens spread over the image, and larger
Voronoi cells. Beside it the model's parent,
DeiT-Tiny, by token merging, whose count falls from block to block; its mean over the blocks is what compares in cost.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from provenance import PARENT, arguments, launch, print_provenance
from token_merging import merged_logits
from torch import Tensor

import spit
from spit.data.photos import Centres, Photos
from spit.evaluation.report import machine, new_figure, png_of, tidy
from spit.evaluation.samples import spread
from spit.model import SpitModel, choose_tokens
from spit.partition import Partition
from spit.predictor import choose_device

SEED = 0
SIDE = 224
BATCH = 50
BUDGETS = (192, 160, 122, 96, 64, 32)
THRESHOLDS = (0.02, 0.05, 0.07, 0.1, 0.15, 0.2)
MERGED = (0, 4, 8, 11, 13, 16)  # by each block of the parent
COLORS = {"max_tokens": "#1b7837", "merge_threshold": "#5aae61", "random drops": "#c2a5cf", "spread drops": "#762a83",
          "voronoi": "#9970ab", "token merging": "#d95f02", "parent": "#000000"}
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
              f"| {case.top5:.3f} | {case.seconds:.0f} |", flush=True)
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
    yield "parent", "", answers_of(parent)
    for count in MERGED:
        yield "token merging", f"r = {count}", partial(_merged, parent, count)


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


def spread_tokens(partition: Partition, budget: int) -> Tensor:
    """Which tokens to keep, ``(ΣN,)`` bool: one after another the one whose box is centred farthest from all before."""
    boxes = partition.boxes().double()
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    return torch.cat([_farthest(some, budget) for some in centres.split(partition.counts.tolist())])


def _farthest(centres: Tensor, budget: int) -> Tensor:
    kept = torch.zeros(len(centres), dtype=torch.bool, device=centres.device)
    distance = torch.full_like(centres[:, 0], torch.inf)
    place = 0
    for _ in range(min(budget, len(centres))):
        kept[place] = True
        distance = torch.minimum(distance, (centres - centres[place]).square().sum(1))
        place = int(distance.argmax())
    return kept


def _merged(parent: SpitModel, count: int, images: Tensor) -> tuple[Tensor, float, float]:
    logits, counts = merged_logits(parent, images, count)
    before = [int(parent.tokenize(images[:1])[0].counts[0]), *counts[:-1]]  # attention sees the tokens before a merge
    return logits, (sum(before) + sum(counts)) / (2 * len(counts)), counts[-1]


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
        if own and way not in ("parent", "token merging"):
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
