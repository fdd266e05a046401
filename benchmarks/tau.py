"""What τ costs on a GPU, stage by stage: the kernels of ``graph.py`` beside the former ones, and settings of each.

    python benchmarks/tau.py --images FOLDER        # on a machine with CUDA; about four minutes

Every variant's labels are compared with those of the former kernels, and the line says so. Times of stages are of
kernels alone, from the profiler; totals are of calls, medians of device events. ``--only`` picks parts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import torch
import triton
import triton.language as tl
from gpu import STAGES, copy_rate, kernel_times
from provenance import arguments, launch, print_provenance
from torch import Tensor

import spit
from spit import kernels
from spit.bench import median_ms, photo_batch
from spit.bench.photos import sample_photos
from spit.data.folders import image_paths
from spit.kernels import SCALE, Rules
from spit.kernels.gpu import graph, preprocess, replay, strips
from spit.kernels.gpu import launch as settings
from spit.kernels.gpu.strips import LANES, Strips, east, strip_at, west
from spit.kernels.reference.superpixels import contract_levels
from spit.tokenizers import preprocess as features_of

SEED = 0
CASES = ((256, 256, 256), (256, 224, 224), (128, 321, 481), (1, 321, 481), (1, 2048, 2048))  # batch, height, width
OPTIONS = (Rules(compactness=0.1), Rules(merge_threshold=0.1), Rules(similarity="variance", loop_clip=None),
           Rules(max_tokens=196), Rules(levels=6))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", help="a folder of photos; by default scikit-image's samples")
    parser.add_argument("--only", nargs="+", default=["totals", "stages", "settings", "diffusion", "replay"],
                        choices=["totals", "stages", "settings", "diffusion", "replay"])
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise spit.SpitError("torch finds no CUDA device here; this benchmark measures one")
    device = torch.device("cuda")
    paths = image_paths(args.images) if args.images else sample_photos()
    print_provenance(f"{len(paths)} photos, random squares of them resized; on {torch.cuda.get_device_name()}", SEED)
    square = photo_batch(paths, *CASES[0], SEED).to(device)
    parts: dict[str, Callable[[], None]] = {
        "totals": lambda: print_totals([photo_batch(paths, *case, SEED).to(device) for case in CASES]),
        "stages": lambda: print_stages(square),
        "settings": lambda: print_settings(square),
        "diffusion": lambda: print_diffusion(square),
        "replay": lambda: print_replay(square),
    }
    for part in args.only:
        print(f"— {part}", flush=True)
        parts[part]()


def print_totals(batches: list[Tensor]) -> None:
    """Milliseconds an image: former and new kernels; then options at 256²."""
    tokenizer = spit.SuperpixelTokenizer()
    for images in batches:
        compare(f"{len(images)} × {images.shape[2]}×{images.shape[3]}", partial(tokenizer, images),
                lambda answer: answer.blocks[0], len(images))
    features = features_of.superpixel_features(batches[0], "paper")
    for rules in OPTIONS:
        default = vars(Rules())
        name = ", ".join(f"{key}={value}" for key, value in vars(rules).items() if value != default[key])
        compare(f"labels of features, {name}", partial(kernels.superpixel_labels, features, rules),
                lambda answer: answer[0], len(features))
    compare("all levels of features", partial(kernels.superpixels, features, Rules()),
            lambda levels: torch.cat([parents for parents, _ in levels]), len(features))


def compare(name: str, call: Callable[[], Any], labels: Callable[[Any], Tensor], batch: int) -> None:
    costs, answers = [], []
    for fused in (False, True):
        with setting(settings, FUSED=fused):
            answers.append(labels(call()))
            costs.append(median_ms(call, torch.device("cuda"), rounds=20, warm_up=5) / batch)
    print(f"{name:58s} {costs[0]:.4f} → {costs[1]:.4f} ms an image, {costs[0] / costs[1]:.2f}×, "
          f"{same(*answers)}", flush=True)


def print_stages(images: Tensor) -> None:
    """The floor table: both sets of kernels beside the bytes that must move."""
    tokenizer = spit.SuperpixelTokenizer()
    pixels, *regions = tokenizer.hierarchy(images).counts.sum(1).tolist()
    rate = copy_rate(images.device)
    spent = []
    for fused in (False, True):
        with setting(settings, FUSED=fused):
            spent.append(kernel_times(lambda: tokenizer(images)))
    print(f"copying moves {rate / 1e12:.2f} TB/s\n{'stage':28s} {'MB':>6s} {'floor ms':>9s} {'former':>8s} {'new':>8s} "
          f"{'× floor':>8s}")
    for name, (names, moved) in STAGES.items():
        floor = 1000 * moved(pixels, regions[:-1]) / rate
        former, new = (sum(ms for kernel, ms in times.items() if kernel in names) for times in spent)
        print(f"{name:28s} {moved(pixels, regions[:-1]) / 1e6:6.0f} {floor:9.3f} {former:8.3f} {new:8.3f} "
              f"{new / floor:8.1f}")
    known = set.union(*(names for names, _ in STAGES.values()))
    others = [sum(ms for kernel, ms in times.items() if kernel not in known) for times in spent]
    print(f"{'all other kernels':28s} {'':6s} {'':9s} {others[0]:8.3f} {others[1]:8.3f}")
    print(f"{'sum':28s} {'':6s} {'':9s} {sum(spent[0].values()):8.3f} {sum(spent[1].values()):8.3f}", flush=True)


def print_settings(images: Tensor) -> None:
    """Sizes of blocks and strips, each alone, in milliseconds of the kernels that they concern."""
    features = features_of.superpixel_features(images, "paper")
    expected = kernels.superpixel_labels(features, Rules())[0]
    trials: list[tuple[Any, str, tuple[Any, ...], set[str]]] = [
        (graph, "SQUARES", (32, 64, 128, 256), {"weigh_edges"}),
        (graph, "WARP_SQUARES", (32, 64, 128), {"sum_pixels"}),
        (graph, "CHUNK", (512, 1024, 2048, 4096), {"count_roots", "number_roots"}),
        (graph, "LINK_ROWS", (16, 32, 64), {"link_pixels"}),
        (graph, "BLOCK", (128, 256, 512, 1024), {"region_points", "choose", "sum_regions", "relabel"}),
    ]
    for module, name, values, names in trials:
        for value in values:
            with setting(module, **{name: value}), blocks_of(value if name == "BLOCK" else settings.BLOCK):
                labels = contracted(features)
                times = kernel_times(partial(contracted, features))
            each = ", ".join(f"{kernel} {times.get(kernel, 0):.3f}" for kernel in sorted(names))
            print(f"{name:13s} {value:5d}  {each} ms, {same(labels, expected)}", flush=True)


def contracted(features: Tensor) -> Tensor:
    """Labels without a recording."""
    state = graph.Graph(features, Rules())
    contract_levels(state)
    return state.final_labels()


def print_diffusion(images: Tensor) -> None:
    """Strips, types of the table, the look-up in the same kernel, and arithmetic instead of a table."""
    table, flux = features_of._contrast_table(3, images.device), features_of._flux_table(images.device)
    adjusted = kernels.look_up(images, table)
    with setting(settings, FUSED=False):
        expected = kernels.diffuse(adjusted, flux, 4)
    width = images.shape[3]
    for dtype in (torch.int8, torch.int16, torch.int32):
        for columns, rows in ((8, 32), (8, 64), (8, 128), (4, 64), (2, 64)):
            cut = Strips(columns, strips._count(width, 4, columns), rows)
            with setting(preprocess, FLUX=dtype, cut=lambda *_, cut=cut: cut):
                got = kernels.diffuse(adjusted, flux, 4)
                times = kernel_times(lambda: kernels.diffuse(adjusted, flux, 4))
            print(f"{dtype!s:12s} {columns} columns, {rows:3d} rows  {times.get('_diffuse', 0):.3f} ms, "
                  f"{same(got, expected)}", flush=True)
    for look_up in (False, True):
        for formula in (False, True):
            got = torch.empty_like(adjusted)
            call = partial(diffuse_otherwise, images if look_up else adjusted, table, flux.short(), got, look_up,
                           formula)
            call()
            print(f"{'contrast and diffusion' if look_up else 'diffusion'}, {'formula' if formula else 'table'}: "
                  f"{median_ms(call, images.device):.3f} ms, {same(got, expected)}", flush=True)


def diffuse_otherwise(source: Tensor, table: Tensor, flux: Tensor, out: Tensor, look_up: bool, formula: bool) -> None:
    batch, channels, height, width = source.shape
    cut = strips.cut(width, 4, source.numel())
    _diffuse_otherwise[cut.grid(height, batch * channels)](
        source, table, flux, out, height, width, channels, cut.abreast, STEPS=4, SCALE=SCALE, LOOK_UP=look_up,
        FORMULA=formula, COLUMNS=cut.columns, ROWS=cut.rows, LANES=LANES, num_warps=1)


@triton.jit
def _diffuse_otherwise(source, table, flux, out, height, width, channels, abreast, STEPS: tl.constexpr,
                       SCALE: tl.constexpr, LOOK_UP: tl.constexpr, FORMULA: tl.constexpr, COLUMNS: tl.constexpr,
                       ROWS: tl.constexpr, LANES: tl.constexpr):
    """As ``preprocess._diffuse``, in float32, which holds these integers."""
    x, own, top, bottom = strip_at(height, width, abreast, STEPS, COLUMNS, ROWS, LANES)
    start = tl.program_id(1).to(tl.int64) * height * width
    table += tl.program_id(1) % channels * 256
    inside = x < width
    rows = tl.tuple([])
    norths = tl.tuple([])
    for _ in tl.static_range(STEPS):
        rows += (tl.zeros((LANES, COLUMNS), tl.float32),)
        norths += (tl.zeros((LANES, COLUMNS), tl.float32),)
    ahead = tl.load(source + start + (top - STEPS) * width + x, inside & (top >= STEPS), 0)
    for y in range(top - STEPS, bottom + STEPS):
        row = tl.load(table + ahead).to(tl.float32) if LOOK_UP else ahead.to(tl.float32)
        ahead = tl.load(source + start + (y + 1) * width + x, inside & (y + 1 >= 0) & (y + 1 < height), 0)
        next_rows = tl.tuple([])
        next_norths = tl.tuple([])
        for step in tl.static_range(STEPS):
            here = rows[step]
            south = _flow(flux, row - here, inside & (y - step > 0) & (y - step < height), SCALE, FORMULA)
            after = _flow(flux, east(here, LANES, COLUMNS) - here, x + 1 < width, SCALE, FORMULA)
            before = tl.where(x > 0, west(after, LANES, COLUMNS), 0.0)
            next_rows += (row,)
            next_norths += (south,)
            row = tl.minimum(tl.maximum(here + south - norths[step] + after - before, -SCALE), SCALE)
        rows = next_rows
        norths = next_norths
        tl.store(out + start + (y - STEPS) * width + x, row.to(tl.int16), own & (y - STEPS >= top))


@triton.jit
def _flow(flux, difference, exists, SCALE: tl.constexpr, FORMULA: tl.constexpr):
    if FORMULA:  # ½ Δ exp(−(Δ / 0.1)²), rounded by the addition
        amount = 0.5 * difference * tl.exp2(difference * difference * (-1.4426950408889634 / (0.01 * SCALE * SCALE)))
        return tl.where(exists, (amount + 12582912.0) - 12582912.0, 0.0)
    else:
        near = exists & (difference > -SCALE // 2) & (difference < SCALE // 2)
        return tl.load(flux + difference.to(tl.int32) + 2 * SCALE, near, 0).to(tl.float32)


def print_replay(images: Tensor) -> None:
    """Launches one by one against a recording: device time, and how long Python is busy."""
    features = features_of.superpixel_features(images, "paper")
    for batch in (1, 16, 64, 128, 256):
        part = features[:batch]
        line = []
        for small in (0, part.numel()):
            with setting(replay, SMALL=small, HELD=2**27):
                call = partial(kernels.superpixel_labels, part, Rules())
                device = median_ms(call, part.device, rounds=20, warm_up=5)
                line.append(f"{device:.3f} ms (Python {host_ms(call):.3f})")
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
    before = settings.blocks.__defaults__
    settings.blocks.__defaults__ = (size,)
    try:
        yield
    finally:
        settings.blocks.__defaults__ = before


def same(got: Tensor, expected: Tensor) -> str:
    return "equal" if torch.equal(got, expected) else "NOT EQUAL"


if __name__ == "__main__":
    launch(main)
