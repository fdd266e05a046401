"""What τ costs on a GPU: calls, options, stages beside the bytes they must move, and other sizes of blocks and strips.

    python benchmarks/tau.py --images FOLDER        # on a machine with CUDA; about three minutes

Labels are compared with those of the CPU, and the line says so. Times of stages and settings are of kernels alone, from
the profiler; totals are of calls, medians of device events. ``--only`` picks parts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

import torch
from gpu import SHIPPED, copy_rate, kernel_times, print_floors, token_floors
from provenance import arguments, launch, print_provenance
from torch import Tensor

import spit
from spit import kernels
from spit.bench import median_ms, photo_batch
from spit.bench.photos import sample_photos
from spit.data.folders import image_paths
from spit.kernels import Rules
from spit.tokenizers.preprocess import superpixel_features

SEED = 0
CASES = ((256, 256, 256), (256, 224, 224), (128, 321, 481), (1, 224, 224), (1, 321, 481), (1, 2048, 2048))  # B, H, W
RULES = Rules(loop_clip=None, compactness=0.8)  # of spit_tiny_16
OPTIONS = (Rules(), RULES, Rules(compactness=0.1), Rules(merge_threshold=0.1),
           Rules(similarity="variance", loop_clip=None), Rules(max_tokens=196), Rules(levels=6))
COMPARED = 4  # images of a batch whose labels are compared
PARTS = ("totals", "stages", "settings", "replay")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", help="a folder of photos; by default scikit-image's samples")
    parser.add_argument("--only", nargs="+", default=PARTS, choices=PARTS)
    args = parser.parse_args()
    paths = image_paths(args.images) if args.images else sample_photos()
    if not torch.cuda.is_available():
        raise spit.SpitError("torch finds no CUDA device here; this benchmark measures one")
    device = torch.device("cuda")
    print_provenance(f"{len(paths)} photos, random squares of them resized; on {torch.cuda.get_device_name()}", SEED)
    square = photo_batch(paths, *CASES[0], SEED).to(device)
    parts: dict[str, Callable[[], None]] = {
        "totals": lambda: print_totals([photo_batch(paths, *case, SEED).to(device) for case in CASES]),
        "stages": lambda: print_stages(square),
        "settings": lambda: print_settings(square),
        "replay": lambda: print_replay(square),
    }
    for part in args.only:
        print(f"— {part}", flush=True)
        parts[part]()


def print_totals(batches: list[Tensor]) -> None:
    """Milliseconds an image of calls; then options at 256²."""
    tokenizer = spit.SuperpixelTokenizer()
    for images in batches:
        cost = median_ms(partial(tokenizer, images), images.device, rounds=20, warm_up=5)
        got, expected = tokenizer(images).blocks[0], tokenizer(images[-COMPARED:].cpu()).blocks[0]
        print(f"{f'{len(images)} × {images.shape[2]}×{images.shape[3]}':58s} {cost / len(images):.4f} ms an image, "
              f"{same(got[-COMPARED:], expected)}", flush=True)
    features = superpixel_features(batches[0], "paper")
    for rules in OPTIONS:
        default = vars(Rules())
        name = ", ".join(f"{key}={value}" for key, value in vars(rules).items() if value != default[key])
        call = partial(kernels.superpixel_labels, features, rules)
        cost = median_ms(call, features.device, rounds=20, warm_up=5)
        print(f"{f'labels of features {name}':58s} {cost / len(features):.4f} ms an image, "
              f"{same(call()[0][-COMPARED:], kernels.superpixel_labels(features[-COMPARED:].cpu(), rules)[0])}",
              flush=True)
    cost = median_ms(partial(kernels.superpixels, features, Rules()), features.device, rounds=20, warm_up=5)
    print(f"{'all levels of features':58s} {cost / len(features):.4f} ms an image", flush=True)


def print_stages(images: Tensor) -> None:
    """The floor tables, and the kernels of one image."""
    rate = copy_rate(images.device)
    print(f"copying moves {rate / 1e12:.2f} TB/s")
    for name, tokenizer in (("τ", spit.SuperpixelTokenizer()), ("τ of spit_tiny_16",
                                                               spit.SuperpixelTokenizer(**SHIPPED))):
        print_floors(name, token_floors(images, tokenizer), rate)
        print_floors(f"{name}, one image", token_floors(images[:1].contiguous(), tokenizer), rate)


def print_settings(images: Tensor) -> None:
    """Sizes of blocks and strips, each alone, in milliseconds of the kernels that they concern."""
    features = superpixel_features(images, "paper")
    names = ("superpixels", "preprocess", "tiles")
    graph, preprocess, tiles = (import_module(f"spit.kernels.triton.{name}") for name in names)
    regions = {"region_points", "choose"}
    trials: list[tuple[Any, str, tuple[int, ...], set[str]]] = [
        (graph, "SQUARES", (32, 64, 128, 256), {"weigh_edges"}),
        (graph, "WARP_SQUARES", (32, 64), {"sum_pixels"}),
        (graph, "WARP_REGIONS", (32, 64, 128, 256), {"sum_regions"}),
        (graph, "CHUNK", (512, 1024, 2048), {"count_roots", "number_roots"}),
        (graph, "LINK_ROWS", (16, 32), {"link_pixels"}),
        (graph, "BLOCK", (256, 512, 1024), regions | {"relabel"}),
        (graph, "BUSY", (4096, 8192, 16384, 2**24), regions | {"sum_regions"}),
        (preprocess, "ROWS", (64, 128, 256), {"_diffuse"}),
        (tiles, "BUSY", (768, 1536, 3072), {"_diffuse", "link_pixels"}),
    ]
    expected = [contracted(features, rules) for rules in (Rules(), RULES)]
    for module, name, values, concerned in trials:
        for value in values:
            with setting(module, **{name: value}), blocks_of(value if name == "BLOCK" else graph.BLOCK):
                for rules, labels in zip((Rules(), RULES), expected, strict=True):
                    call = partial(contracted, features, rules) if module is graph else partial(whole, images, rules)
                    got, times = call(), kernel_times(call)
                    each = ", ".join(f"{kernel} {times.get(kernel, 0):.3f}" for kernel in sorted(concerned))
                    print(f"{name:13s} {value:8d}  {'boxes' if rules.compactness else '':5s}  {each} ms, "
                          f"{same(got, labels)}", flush=True)


def contracted(features: Tensor, rules: Rules) -> Tensor:
    """Labels without a recording."""
    state = import_module("spit.kernels.triton.superpixels").Graph(features, rules)
    state.contract_levels()
    labels: Tensor = state.final_labels()
    return labels


def whole(images: Tensor, rules: Rules) -> Tensor:
    return contracted(superpixel_features(images, "paper"), rules)


def print_replay(images: Tensor) -> None:
    """Launches one by one against a recording: device time, and how long Python is busy."""
    recordings = import_module("spit.kernels.recording")
    tokenizer = spit.SuperpixelTokenizer()
    for batch in (1, 16, 64, 128, 256):
        part = images[:batch].contiguous()
        line = []
        for seen in (10**9, 2):
            with setting(recordings, SEEN_BEFORE=seen):
                recordings.replay.clear()
                device = median_ms(partial(tokenizer, part), part.device, rounds=20, warm_up=5)
                line.append(f"{device:.3f} ms (Python {host_ms(partial(tokenizer, part)):.3f})")
        print(f"batch {batch:3d}  launches {line[0]}, recording {line[1]}", flush=True)


def host_ms(call: Callable[[], Any], rounds: int = 20) -> float:
    """Milliseconds until a call returns, while the device still works."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = perf_counter()
        call()
        times.append(1000 * (perf_counter() - start))
    return median(times)


@contextmanager
def setting(module: Any, **values: Any) -> Iterator[None]:
    """Names of a module with other values."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Another default of ``launch.blocks``."""
    blocks = import_module("spit.kernels.triton.launch").blocks
    before = blocks.__defaults__
    blocks.__defaults__ = (size,)
    try:
        yield
    finally:
        blocks.__defaults__ = before


def same(got: Tensor, expected: Tensor) -> str:
    return "equal" if torch.equal(got.cpu(), expected.cpu()) else "NOT EQUAL"


if __name__ == "__main__":
    launch(main)
