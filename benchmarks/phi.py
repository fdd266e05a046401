"""What each stage of φ costs on a GPU: before, now, and with other sizes of its blocks; beside the bytes it must move.

    python benchmarks/phi.py --images FOLDER          # on a machine with CUDA
    ncu --clock-control none --set full -k _gradient_histogram -c 1 python benchmarks/phi.py --once

Every answer is compared with that of the kernels before. Bar (H200): features with gradients, 256², batch 256, at
most 0.006 ms an image; goal 0.0013.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import torch
from gpu import copy_rate, kernel_times
from provenance import arguments, launch, print_provenance
from torch import Tensor

import spit
from spit.bench import median_ms, photo_batch
from spit.bench.photos import sample_photos
from spit.data.folders import image_paths
from spit.features.color import normalize, prepare

SEED = 0
SIDE, BATCH = 256, 256
CLOSE = 2e-6  # float32 sums in another order
K, SIGMA = 16, 0.025


class Stage(NamedTuple):
    """One stage: how it was, how it is, the fewest bytes it must move, and constants of modules to try."""

    name: str
    before: Callable[[], Tensor]
    now: Callable[[], Tensor]
    moved: int
    trials: tuple[dict[str, int], ...] = ()


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", help="a folder of photos; by default scikit-image's samples")
    parser.add_argument("--fill", default="zero", choices=("zero", "image"), help="what patches have around a region")
    parser.add_argument("--once", action="store_true", help="run φ three times and time nothing, for a profiler")
    args = parser.parse_args()
    paths = image_paths(args.images) if args.images else sample_photos()
    if not torch.cuda.is_available():
        raise spit.SpitError("torch finds no CUDA device here; this benchmark measures one")
    device = torch.device("cuda")
    images = photo_batch(paths, BATCH, SIDE, SIDE, SEED).to(device)
    partition, extractor = spit.SuperpixelTokenizer()(images), spit.FeatureExtractor(fill=args.fill)
    if args.once:
        for _ in range(3):
            extractor(images, partition)
        torch.cuda.synchronize()
        return
    print_provenance(f"{len(paths)} photos, {BATCH} squares of {SIDE}²; on {torch.cuda.get_device_name()}", SEED)
    rate = copy_rate(device)
    print(f"copying moves {rate / 1e12:.2f} TB/s; milliseconds of kernels on the device, per batch\n")
    print(f"{'stage':42s} {'MB':>5s} {'floor':>6s} {'before':>7s} {'now':>7s} {'× floor':>8s}  largest difference")
    for stage in stages(images, partition, args.fill):
        floor = 1000 * stage.moved / rate
        difference = (stage.now().float() - stage.before().float()).abs().max().item()
        now = busy(stage.now)
        print(f"{stage.name:42s} {stage.moved / 1e6:5.0f} {floor:6.3f} {busy(stage.before):7.3f} {now:7.3f} "
              f"{now / floor:8.1f}  {difference:.1e}{'' if difference <= CLOSE else '  NOT CLOSE'}")
        for trial in stage.trials:
            with constants(trial):
                off = (stage.now().float() - stage.before().float()).abs().max().item()
                print(f"    {', '.join(f'{name} {value}' for name, value in trial.items()):59s} {busy(stage.now):7.3f} "
                      f"{'':8s}  {off:.1e}{'' if off <= CLOSE else '  NOT CLOSE'}")
    print()
    for name, function in (("φ before", partial(phi_before, images, partition, args.fill)),
                           ("φ now", lambda: extractor(images, partition).values)):
        times = [median_ms(function, device, rounds=30, warm_up=5) for _ in range(2)]
        print(f"{name:10s} {times[0] / BATCH:.5f} ms an image (again: {times[1] / BATCH:.5f}), kernels "
              f"{busy(function) / BATCH:.5f}")
    single = images[:1].contiguous()
    alone = spit.SuperpixelTokenizer()(single)
    print(f"one image: {median_ms(lambda: phi_before(single, alone, args.fill), device, 50, 5):.3f} ms before, "
          f"{median_ms(lambda: extractor(single, alone), device, 50, 5):.3f} now")


def stages(images: Tensor, partition: spit.Partition, fill: str) -> list[Stage]:
    """The stages of φ with what they read and write once, and no cache between them."""
    before = kernels_before()
    features, histograms, regions = (import_module(f"spit.kernels.gpu.{name}")
                                     for name in ("features", "histograms", "regions"))
    labels, offsets = partition.blocks[0], partition.offsets
    boxes, masked = partition.boxes(), fill == "zero"
    windows = spit.features.color.squares(boxes, SIDE, SIDE) if fill == "image" else boxes
    pixels, channels, tokens = labels.numel(), images.shape[1], len(boxes)
    gradients = before.scharr(images)
    colors, table = prepare(images, "contrast")

    def patches() -> Tensor:
        out = torch.empty(tokens, channels, K, K, device=images.device)
        features._sample(colors, out, labels, offsets, windows, masked, False, None, table)
        return out

    def looked_up() -> Tensor:
        out: Tensor = features.color_patches(normalize(images, "contrast"), labels, offsets, windows, K, masked)
        return out

    def sampled_before() -> Tensor:
        out: Tensor = before.color_patches(normalize(images, "contrast"), labels, offsets, windows, K, masked)
        return out

    patch_bytes = pixels * (channels + 4 * masked) + tokens * channels * K * K * 4
    histogram_bytes = pixels * 4 + tokens * K * K * 4
    warps: tuple[dict[str, int], ...] = ({"features.WARPS": 2}, {"features.WARPS": 8})
    return [
        Stage("boxes", lambda: before.region_boxes(labels, offsets), lambda: regions.region_boxes(labels, offsets),
              pixels * 4 + tokens * 16, ({"regions.STRIP": 8}, {"regions.STRIP": 32})),
        Stage("gradients", lambda: before.scharr(images), lambda: features.scharr(images), pixels * (channels + 8),
              ({"regions.STRIP": 8}, {"regions.STRIP": 32})),
        Stage("colour, 8 bits looked up where sampled", sampled_before, patches, patch_bytes, warps),
        Stage("colour, looked up in a pass of its own", sampled_before, looked_up, patch_bytes),
        Stage("position histogram", lambda: before.position_histogram(labels, offsets, K, SIGMA, boxes),
              lambda: histograms.position_histogram(labels, offsets, K, SIGMA, boxes), histogram_bytes,
              ({"histograms.ROWS": 32}, {"histograms.COLUMNS": 16})),
        Stage("gradient histogram", lambda: before.gradient_histogram(gradients, labels, offsets, K, SIGMA, boxes),
              lambda: histograms.gradient_histogram(gradients, labels, offsets, K, SIGMA, boxes),
              histogram_bytes + pixels * 8,
              ({"histograms.CHUNK": 64}, {"histograms.CHUNK": 64, "histograms.DENSE": 32})),
        Stage("gradient histogram, σ = 0.05",
              lambda: before.gradient_histogram(gradients, labels, offsets, K, 2 * SIGMA, boxes),
              lambda: histograms.gradient_histogram(gradients, labels, offsets, K, 2 * SIGMA, boxes),
              histogram_bytes + pixels * 8, ({"histograms.DENSE": 32},)),
        Stage("φ", lambda: phi_before(images, partition, fill),
              lambda: spit.FeatureExtractor(fill=fill)(images, partition).values,
              pixels * (channels + 4) + tokens * (channels + 2) * K * K * 4),
    ]


def phi_before(images: Tensor, partition: spit.Partition, fill: str) -> Tensor:
    """φ as the extractor was."""
    before = kernels_before()
    labels, offsets = partition.blocks[0], partition.offsets
    boxes = before.region_boxes(labels, offsets)
    windows = spit.features.color.squares(boxes, *labels.shape[1:]) if fill == "image" else boxes
    return torch.cat([
        before.color_patches(normalize(images, "contrast"), labels, offsets, windows, K, fill == "zero").flatten(1),
        before.position_histogram(labels, offsets, K, SIGMA, boxes),
        before.gradient_histogram(before.scharr(images), labels, offsets, K, SIGMA, boxes),
    ], 1)


def kernels_before() -> ModuleType:
    return import_module("before.phi")


def busy(function: Callable[[], Tensor]) -> float:
    """Milliseconds of all kernels of a call."""
    return sum(kernel_times(function, rounds=20).values())


@contextmanager
def constants(values: dict[str, int]) -> Iterator[None]:
    """Constants of the GPU modules, "module.NAME", for as long as this lasts."""
    kept: list[tuple[ModuleType, str, int]] = []
    tables = import_module("spit.kernels.gpu.histograms")._position_tables
    try:
        for path, value in values.items():
            module, name = import_module(f"spit.kernels.gpu.{path.split('.')[0]}"), path.split(".")[1]
            kept.append((module, name, getattr(module, name)))
            setattr(module, name, value)
        tables.cache_clear()  # their length depends on ROWS and COLUMNS
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)
        tables.cache_clear()


if __name__ == "__main__":
    launch(main)
