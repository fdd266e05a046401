"""What tokens cost on a GPU, and how far each stage is from the bytes it must move.

    python benchmarks/gpu.py            # on a machine with CUDA

Bars (H200): superpixels 256² batch 256 at most 0.008 ms an image (goal 0.003), 321×481 batch 128 at most
0.07, 321×481 batch 1 at most 1 ms; features with gradients 256² batch 256 at most 0.006 (goal 0.0013).
Figures of the published code on an H200 stand beside ours. Throughput beside timm is ``peers.py``'s,
labels beside numba's ``spit bench --check``'s, hardware counters ``counters.py``'s.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from provenance import arguments, launch, print_provenance
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

import spit
from spit.bench import median_ms, photo_batch
from spit.bench.photos import sample_photos
from spit.data.folders import image_paths

SEED = 0
SHIPPED = {"compactness": 0.8, "self_loop": "none"}  # of the tokenizer of spit_tiny_16
STAGES: dict[str, tuple[set[str], Callable[[int, list[int], int], int]]] = {
    # Stages of τ: their kernels, and the fewest bytes that they must read and write for P pixels of three channels, R
    # regions at each level that joins again, and boxes of B bytes. What a cache serves again is not counted. A region's
    # sums and its point take 16 bytes each, its key 8, a pixel's direction 1.
    "contrast": ({"_look_up"}, lambda P, R, B: P * 9),
    "diffusion, 4 steps": ({"_diffuse"}, lambda P, R, B: P * 12),
    "level 0: best neighbour": ({"link_pixels"}, lambda P, R, B: P * (6 + 1)),
    "trees: roots and numbers": ({"count_roots", "number_roots"},
                                 lambda P, R, B: P * (1 + 1) + sum(R) * (4 + 4 + 4 + 16 + B)),
    "sums of pixels": ({"sum_pixels"}, lambda P, R, B: P * (1 + 6 + 4) + R[0] * (4 + 2 * (16 + B))),
    "sums of regions": ({"sum_regions"},
                        lambda P, R, B: sum(R) * (4 + 4 + 16 + B + 4) + sum(R[1:]) * 2 * (16 + B)),
    "points of regions": ({"region_points"}, lambda P, R, B: sum(R) * (16 + 16 + 8)),
    "edges of all levels": ({"weigh_edges"},
                            lambda P, R, B: P * (4 * len(R) + 4 * (len(R) - 1)) + sum(R) * (16 + B + 16 + 4)),
    "choices of regions": ({"choose"}, lambda P, R, B: sum(R) * (8 + 4 + 8)),
    "labels": ({"relabel"}, lambda P, R, B: P * 8),
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", help="a folder of photos; by default scikit-image's samples")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise spit.SpitError("torch finds no CUDA device here; this benchmark measures one")
    device = torch.device("cuda")
    paths = image_paths(args.images) if args.images else sample_photos()
    print_provenance(f"{len(paths)} photos, random squares of them resized; on {torch.cuda.get_device_name()}", SEED)
    tokenizer, extractor = spit.SuperpixelTokenizer(), spit.FeatureExtractor()
    square = photo_batch(paths, 256, 256, 256, SEED).to(device)
    wide = photo_batch(paths, 128, 321, 481, SEED).to(device)
    single = wide[:1].contiguous()
    partition = tokenizer(square)
    bars = [
        ("superpixels 256², batch 256", lambda: tokenizer(square), 256, 0.008, 0.241),
        ("superpixels 321×481, batch 128", lambda: tokenizer(wide), 128, 0.07, 0.539),
        ("superpixels 321×481, batch 1", lambda: tokenizer(single), 1, 1.0, 13.9),
        ("features 256², batch 256", lambda: extractor(square, partition), 256, 0.006, 0.555),
    ]
    for name, function, batch, bar, published in bars:
        cost = median_ms(function, device, rounds=30, warm_up=5) / batch
        verdict = "within" if cost <= bar else "NOT within"
        print(f"{name:32s} {cost:.4f} ms an image ({verdict} {bar}; "
              f"published code {published}, {published / cost:.0f}×)")
    for sweeps in (1, 3, 5):
        refined = spit.SuperpixelTokenizer(refine=sweeps)
        costs = [median_ms(lambda method=method, images=images: method(images), device, rounds=30, warm_up=5)
                 for images in (square, wide, single) for method in (tokenizer, refined)]
        ratios = ", ".join(f"{after / before:.2f}" for before, after in zip(costs[::2], costs[1::2], strict=True))
        print(f"with {sweeps} sweeps of refinement superpixels cost {ratios} times as much")
    rate = copy_rate(device)
    print(f"\ncopying moves {rate / 1e12:.2f} TB/s")
    print_floors("τ", token_floors(square, tokenizer), rate)
    print_floors("τ of spit_tiny_16", token_floors(square, spit.SuperpixelTokenizer(**SHIPPED)), rate)
    print_floors("φ", feature_floors(square, partition), rate)


Floor = tuple[str, float, float]  # a stage, its milliseconds, and the fewest bytes that it must move; 0 if not counted


def print_floors(title: str, floors: Iterator[Floor], rate: float) -> None:
    """One line for each stage, and their sum."""
    print(f"\n{title:34s} {'MB':>7s} {'floor ms':>9s} {'ms':>7s} {'×':>5s}")
    total = 0.0
    for name, milliseconds, moved in floors:
        floor = 1000 * moved / rate
        total += milliseconds
        print(f"{name:34s} {moved / 1e6:7.0f} {floor:9.3f} {milliseconds:7.3f} {milliseconds / floor:5.1f}"
              if moved else f"{name:34s} {'':7s} {'':9s} {milliseconds:7.3f}")
    print(f"{'sum':34s} {'':7s} {'':9s} {total:7.3f}", flush=True)


def token_floors(images: Tensor, tokenizer: spit.SuperpixelTokenizer) -> Iterator[Floor]:
    """The stages of τ."""
    pixels, *regions = tokenizer.hierarchy(images).counts.sum(1).tolist()  # of the batch, level by level
    spent = kernel_times(lambda: tokenizer(images))
    for name, (kernels, moved) in STAGES.items():
        yield name, sum(spent.pop(kernel, 0.0) for kernel in kernels), moved(pixels, regions[:-1],
                                                                            16 * (tokenizer.compactness > 0))
    yield "all others", sum(spent.values()), 0


def feature_floors(images: Tensor, partition: spit.Partition) -> Iterator[Floor]:
    """The stages of φ."""
    pixels, channels, tokens = partition.blocks[0].numel(), images.shape[1], int(partition.offsets[-1])
    extractor = spit.FeatureExtractor()
    spent = kernel_times(lambda: extractor(images, partition))
    stages = {
        "colour with its contrast": ({"_color_patches"}, pixels * (channels + 4) + tokens * channels * 256 * 4),
        "boxes": ({"_boxes", "_flip"}, pixels * 4 + tokens * 16),
        "images of regions": ({"_owners"}, tokens * 4),
        "position histogram": ({"_position_histogram"}, pixels * 4 + tokens * 256 * 4),
        "gradients": ({"_scharr"}, pixels * (channels + 8)),
        "gradient histogram": ({"_gradient_histogram"}, pixels * (8 + 4) + tokens * 256 * 4),
    }
    for name, (kernels, moved) in stages.items():
        yield name, sum(spent.pop(kernel, 0.0) for kernel in kernels), moved
    yield "all others", sum(spent.values()), 0


def kernel_times(function: Callable[[], Any], rounds: int = 5) -> dict[str, float]:
    """Milliseconds on the device of every kernel, added up over one call."""
    for _ in range(4):
        function()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(rounds):
            function()
        torch.cuda.synchronize()
    return {event.key: event.self_device_time_total / 1000 / rounds for event in profiler.key_averages()}


def copy_rate(device: torch.device) -> float:
    """Bytes per second, read and written, of a large copy."""
    source = torch.empty(2**30, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() / (median_ms(lambda: target.copy_(source), device) / 1000)


if __name__ == "__main__":
    launch(main)
