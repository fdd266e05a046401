"""What each stage of φ costs on a GPU, and with other sizes of its blocks, beside the bytes it must move.

    python benchmarks/phi.py --images FOLDER          # on a machine with CUDA

Answers for the first images are compared with the definition, computed in float64. Bar (H200): features with gradients,
256², batch 256, at most 0.006 ms an image; goal 0.0013.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import torch
from gpu import copy_rate, kernel_times
from provenance import arguments, launch, print_provenance
from torch import Tensor

import spit
from spit import kernels
from spit.bench import median_ms, photo_batch
from spit.bench.photos import sample_photos
from spit.data.folders import image_paths
from spit.features.color import prepare

SEED = 0
SIDE, BATCH = 256, 256
COMPARED = 4  # images
CLOSE = 2e-6  # float32 sums
K, SIGMA = 16, 0.025


class Stage(NamedTuple):
    """One stage: a call with a batch and its partition, the fewest bytes it must move, and constants to try."""

    name: str
    call: Callable[[Tensor, spit.Partition], Tensor]
    moved: int
    trials: tuple[dict[str, Any], ...] = ()


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", help="a folder of photos; by default scikit-image's samples")
    parser.add_argument("--fill", default="zero", choices=("zero", "image"), help="what patches have around a region")
    args = parser.parse_args()
    paths = image_paths(args.images) if args.images else sample_photos()
    if not torch.cuda.is_available():
        raise spit.SpitError("torch finds no CUDA device here; this benchmark measures one")
    device = torch.device("cuda")
    images = photo_batch(paths, BATCH, SIDE, SIDE, SEED).to(device)
    tokenizer, extractor = spit.SuperpixelTokenizer(), spit.FeatureExtractor(fill=args.fill)
    partition = tokenizer(images)
    first = tokenizer(images[:COMPARED].cpu())
    print_provenance(f"{len(paths)} photos, {BATCH} squares of {SIDE}²; on {torch.cuda.get_device_name()}", SEED)
    rate = copy_rate(device)
    print(f"copying moves {rate / 1e12:.2f} TB/s; milliseconds of kernels on the device, per batch\n")
    print(f"{'stage':44s} {'MB':>5s} {'floor':>6s} {'ms':>7s} {'× floor':>8s}  largest difference")
    for stage in stages(images, partition, args.fill):
        with kernels.backend("reference"):
            expected = stage.call(images[:COMPARED].cpu(), first)
        call = partial(stage.call, images, partition)
        floor = 1000 * stage.moved / rate
        print(f"{stage.name:44s} {stage.moved / 1e6:5.0f} {floor:6.3f} {busy(call):7.3f} {busy(call) / floor:8.1f}  "
              f"{compared(call(), expected)}", flush=True)
        for trial in stage.trials:
            with constants(trial):
                print(f"    {', '.join(f'{name} {value}' for name, value in trial.items()):53s} {busy(call):7.3f} "
                      f"{'':8s}  {compared(call(), expected)}", flush=True)
    times = [median_ms(lambda: extractor(images, partition), device, rounds=30, warm_up=5) for _ in range(2)]
    print(f"\nφ {times[0] / BATCH:.5f} ms an image (again: {times[1] / BATCH:.5f}), kernels "
          f"{busy(lambda: extractor(images, partition).values) / BATCH:.5f}")
    single = images[:1].contiguous()
    alone = tokenizer(single)
    print(f"one image: {median_ms(lambda: extractor(single, alone), device, 50, 5):.3f} ms, kernels:")
    for name, spent in sorted(kernel_times(lambda: extractor(single, alone)).items(), key=lambda item: -item[1])[:9]:
        print(f"    {name[:50]:50s} {spent:.4f}")


def stages(images: Tensor, partition: spit.Partition, fill: str) -> list[Stage]:
    """The stages of φ with what they read and write once, and no cache between them."""
    pixels, channels, tokens = partition.blocks[0].numel(), images.shape[1], int(partition.offsets[-1])
    tight, gradients = partition.boxes(), kernels.scharr(images)

    def box(part: spit.Partition) -> Tensor:
        return tight if part is partition else part.boxes()

    def textures(given: Tensor, part: spit.Partition, sigma: float) -> Tensor:
        some = gradients[: len(part)].to(given.device)
        return kernels.gradient_histogram(some, part.blocks[0], part.offsets, K, sigma, box(part))

    def patches(given: Tensor, part: spit.Partition) -> Tensor:
        windows = spit.features.color.squares(box(part), SIDE, SIDE) if fill == "image" else box(part)
        return kernels.region_features(*prepare(given, "contrast"), None, part.blocks[0], part.offsets, box(part),
                                       windows, K, fill == "zero", (1, 1.0), (1, 1.0))

    histogram = pixels * 4 + tokens * K * K * 4
    strips: tuple[dict[str, Any], ...] = ({"regions.STRIP": 8}, {"regions.STRIP": 32})
    listed: tuple[dict[str, Any], ...] = (
        {"histograms.DENSE": 32},
        {"histograms.HELD": 512}, {"histograms.HELD": 512, "histograms.STEP": 8}, {"histograms.WINDOWS": (6,)})
    return [
        Stage("boxes", lambda given, part: kernels.region_boxes(part.blocks[0], part.offsets),
              pixels * 4 + tokens * 16, strips),
        Stage("gradients", lambda given, part: kernels.scharr(given), pixels * (channels + 8), strips),
        Stage("colour, with a position histogram of one bin", patches,
              pixels * (channels + 4 * (fill == "zero")) + tokens * channels * K * K * 4,
              ({"features.WARPS": 4}, {"features.WARPS": 2})),
        Stage("position histogram",
              lambda given, part: kernels.position_histogram(part.blocks[0], part.offsets, K, SIGMA, box(part)),
              histogram),
        Stage("gradient histogram", partial(textures, sigma=SIGMA), histogram + pixels * 8, listed),
        Stage("gradient histogram, σ = 0.05", partial(textures, sigma=2 * SIGMA), histogram + pixels * 8, listed),
        Stage("φ", lambda given, part: spit.FeatureExtractor(fill=fill)(given, part).values,
              pixels * (channels + 4) + tokens * (channels + 2) * K * K * 4),
    ]


def compared(got: Tensor, expected: Tensor) -> str:
    """How far the answer for the first images is from the definition."""
    difference = (got[: len(expected)].cpu().double() - expected.double()).abs().max().item()
    return f"{difference:.1e}{'' if difference <= CLOSE else '  NOT CLOSE'}"


def busy(function: Callable[[], Tensor]) -> float:
    """Milliseconds of all kernels of a call."""
    return sum(kernel_times(function, rounds=20).values())


@contextmanager
def constants(values: dict[str, Any]) -> Iterator[None]:
    """Constants of the GPU modules, "module.NAME", for as long as this lasts."""
    kept: list[tuple[ModuleType, str, Any]] = []
    try:
        for path, value in values.items():
            module, name = import_module(f"spit.kernels.triton.{path.split('.')[0]}"), path.split(".")[1]
            kept.append((module, name, getattr(module, name)))
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)


if __name__ == "__main__":
    launch(main)
