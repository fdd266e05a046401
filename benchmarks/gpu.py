"""What tokens cost on a GPU, and how far each stage is from the bytes it must move.

    python benchmarks/gpu.py            # on a machine with CUDA

Bars (H200): superpixels 256² batch 256 at most 0.025 ms an image (goal 0.012), 321×481 batch 128 at most
0.07, 321×481 batch 1 at most 1 ms; features with gradients 256² batch 256 at most 0.03. Figures of the
published code on an H200 stand beside ours. Throughput beside timm is ``spit bench``'s, labels beside
numba's ``spit bench --check``'s.
"""

from collections.abc import Callable
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
STAGES: dict[str, tuple[set[str], Callable[[int, list[int]], int]]] = {
    # Stages of τ: their kernels, the former ones too, and the fewest bytes that they must read and write for P pixels
    # of three channels and R regions at each level that joins again. What a cache serves again is not counted. A
    # region's sums and its point take 16 bytes each, its key 8, a pixel's direction 1.
    "contrast": ({"_look_up"}, lambda P, R: P * 9),
    "diffusion, 4 steps": ({"_diffuse", "_diffuse_once"}, lambda P, R: P * 12),
    "level 0: best neighbour": ({"pixel_points", "link_pixels"}, lambda P, R: P * (6 + 1)),
    "trees: roots and numbers": ({"_find_roots", "_number_roots", "count_roots", "number_roots"},
                                 lambda P, R: P * (1 + 1) + sum(R) * (4 + 4 + 4 + 16)),
    "sums of pixels": ({"sum_pixels"}, lambda P, R: P * (1 + 6 + 4) + R[0] * (4 + 2 * 16)),
    "sums of regions": ({"sum_regions"}, lambda P, R: sum(R) * (4 + 4 + 16 + 4) + sum(R[1:]) * 2 * 16),
    "points of regions": ({"region_points"}, lambda P, R: sum(R) * (16 + 16 + 8)),
    "edges of all levels": ({"weigh_edges", "walk_pixels", "walk_list"},
                            lambda P, R: P * (4 * len(R) + 4 * (len(R) - 1)) + sum(R) * (16 + 16 + 4)),
    "choices of regions": ({"choose"}, lambda P, R: sum(R) * (8 + 4 + 8)),
    "labels": ({"_compose", "relabel"}, lambda P, R: P * 8),
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
        ("superpixels 256², batch 256", lambda: tokenizer(square), 256, 0.025, 0.241),
        ("superpixels 321×481, batch 128", lambda: tokenizer(wide), 128, 0.07, 0.539),
        ("superpixels 321×481, batch 1", lambda: tokenizer(single), 1, 1.0, 13.9),
        ("features 256², batch 256", lambda: extractor(square, partition), 256, 0.03, 0.555),
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
    print(f"\ncopying moves {rate / 1e12:.2f} TB/s\n{'stage':34s} {'MB':>7s} {'floor ms':>9s} {'ms':>7s} {'×':>5s}")
    for name, kernels, moved in floors(square, tokenizer, partition):
        print_floor(name, kernels, moved, rate)


def print_floor(name: str, milliseconds: float, moved: float, rate: float) -> None:
    floor = 1000 * moved / rate
    print(f"{name:34s} {moved / 1e6:7.0f} {floor:9.3f} {milliseconds:7.3f} {milliseconds / floor:5.1f}")


def floors(images: Tensor, tokenizer: spit.SuperpixelTokenizer,
           partition: spit.Partition) -> list[tuple[str, float, float]]:
    """For each stage its time and the fewest bytes it must read and write."""
    pixels, *regions = tokenizer.hierarchy(images).counts.sum(1).tolist()  # of the batch, level by level
    channels, tokens = images.shape[1], regions[-1]
    extractor = spit.FeatureExtractor()
    spent = kernel_times(lambda: tokenizer(images)) | {
        f"φ{name}": ms for name, ms in kernel_times(lambda: extractor(images, partition)).items()}

    def time(*names: str) -> float:
        return sum(ms for kernel, ms in spent.items() if kernel in names)

    return [
        *((name, time(*kernels), moved(pixels, regions[:-1])) for name, (kernels, moved) in STAGES.items()),
        ("φ: colour with its contrast", time("φ_look_up", "φ_color_patches"),
         pixels * channels * (1 + 4 + 4) + pixels * 4 + tokens * 3 * 256 * 4),
        ("φ: boxes", time("φ_boxes"), pixels * 4 + tokens * 16),
        ("φ: position histogram", time("φ_position_histogram"), pixels * 4 + tokens * 256 * 4),
        ("φ: gradients and their histogram", time("φ_scharr", "φ_gradient_histogram"),
         pixels * (channels + 8 + 8 + 4) + tokens * 256 * 4),
    ]


def kernel_times(function: Callable[[], Any], rounds: int = 5) -> dict[str, float]:
    """Milliseconds on the device of every kernel, added up over one call."""
    for _ in range(3):
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
