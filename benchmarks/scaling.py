"""How the cost of tokens grows with the image and with the batch.

    python benchmarks/scaling.py        # scaling.png; up to 4096² with CUDA, 1024² on a CPU

Milliseconds per image of tokenizer and features: one image of growing size, then growing batches of 256². The picture
shows both, with a dotted line where cost would grow with the pixels.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from provenance import arguments, launch, print_provenance

import spit
from spit.bench import median_ms, photo_batch
from spit.bench.photos import sample_photos
from spit.data.folders import image_paths
from spit.devices import choose_device, machine
from spit.drawing.plots import new_figure, png_of, tidy

SEED = 0
SIDES = (128, 256, 512, 1024, 2048, 4096)
BATCHES = (1, 4, 16, 64, 256)
SIDE = 256  # of the images whose batch grows
COLORS = {"tokenizer": "#1b7837", "features": "#762a83"}
Case = dict[str, float]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", help="a folder of photos; by default scikit-image's samples")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--largest", type=int, help="largest side; by default 4096 with CUDA, 1024 on a CPU")
    parser.add_argument("--output", type=Path, default=Path("scaling.png"), help="file for the picture")
    args = parser.parse_args()
    device = torch.device(choose_device(args.device))
    largest = args.largest or (4096 if device.type == "cuda" else 1024)
    paths = image_paths(args.images) if args.images else sample_photos()
    print_provenance(f"{len(paths)} photos, random squares of them resized; on {machine(device)}", SEED)
    print("| image | batch | tokens | tokenizer, ms/image | features, ms/image |\n|---|---:|---:|---:|---:|")
    cases = []
    for case in measure(paths, device, largest):
        cases.append(case)
        print(f"| {case['side']}² | {case['batch']} | {case['tokens']:.0f} | {case['tokenizer']:.4f} "
              f"| {case['features']:.4f} |", flush=True)
    args.output.write_bytes(draw(cases, f"Cost of superpixel tokens on {machine(device)}"))
    print(f"\nThe picture is {args.output}")


def measure(paths: Sequence[Path], device: torch.device, largest: int) -> Iterator[Case]:
    """Time each case; batches of 256² have at most as many pixels as the largest image."""
    tokenizer, extractor = spit.SuperpixelTokenizer(), spit.FeatureExtractor()
    cases = [(side, 1) for side in SIDES if side <= largest]
    cases += [(SIDE, batch) for batch in BATCHES if batch > 1 and batch * SIDE**2 <= largest**2]
    for side, batch in cases:
        images = photo_batch(paths, batch, side, side, SEED).to(device)
        partition = tokenizer(images)
        yield {"side": side, "batch": batch, "tokens": float(partition.counts.float().mean()),
               "tokenizer": median_ms(partial(tokenizer, images), device, rounds=10) / batch,
               "features": median_ms(partial(extractor, images, partition), device, rounds=10) / batch}


def draw(cases: Sequence[Case], title: str) -> bytes:
    """Cost against size, and against batch, as a PNG."""
    figure = new_figure(10, 4.2, title)
    by_size, by_batch = figure.subplots(1, 2, sharey=True)
    single = [case for case in cases if case["batch"] == 1]
    batched = [case for case in cases if case["side"] == SIDE]
    for name, color in COLORS.items():
        pixels, cost = [case["side"] ** 2 for case in single], [case[name] for case in single]
        by_size.loglog(pixels, cost, "o-", color=color, label=name)
        by_size.loglog(pixels, [cost[-1] * count / pixels[-1] for count in pixels], ":", color=color, linewidth=1)
        by_batch.loglog([case["batch"] for case in batched], [case[name] for case in batched], "o-", color=color,
                        label=name)
    by_size.set_xlabel("pixels of one image (dotted: linear)")
    by_size.set_ylabel("milliseconds per image")
    by_size.set_xticks([case["side"] ** 2 for case in single], [f"{case['side']}²" for case in single])
    by_batch.set_xlabel(f"images of {SIDE}×{SIDE} in a batch")
    by_batch.set_xticks([case["batch"] for case in batched], [str(case["batch"]) for case in batched])
    for axes in (by_size, by_batch):
        axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
        axes.legend(frameon=False)
        tidy(axes)
    return png_of(figure)


if __name__ == "__main__":
    launch(main)
