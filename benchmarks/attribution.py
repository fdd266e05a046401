"""What an explanation costs beside a plain forward pass, or beside another explanation.

    python benchmarks/attribution.py [--device cuda] [--images 32] [--size 224] [--repeats 7]
    python benchmarks/attribution.py --model spit_tiny_16.elastic_retrofit --method token_rise --against lime
        --images 1 --repeats 5

DeiT-Tiny through ``spit.from_timm`` (or random weights of its shape), on square patches and on superpixels, or
--model, on views of the photos that scikit-image ships, others in each turn. Passes take turns, so that a busy machine
slows all of them; the ratio is the median over the turns of each turn's own.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import torch
from provenance import arguments, launch, print_provenance

import spit
from spit.bench.photos import photo_batch, sample_photos

METHODS = ("flow", "rollout", "relevance", "random")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--method", action="append", help=f"among {', '.join(METHODS)}; by default all")
    parser.add_argument("--against", default="forward", help="what times are divided by: forward, or a method")
    parser.add_argument("--model", help="a model in place of DeiT-Tiny, on its own tokens")
    args = parser.parse_args()
    views = photo_batch(sample_photos(), args.images * (args.repeats + 1), args.size, args.size).to(args.device)
    print_provenance(f"{args.images} photos at {args.size}², {args.device}, {torch.get_num_threads()} threads", seed=0)
    print(f"| tokens | pass | ms for {args.images} images | against {args.against} |\n|---|---|---:|---:|")
    if args.model:
        model = spit.load(args.model, device=args.device).model
        measure(model, views, args.model, args.method or METHODS, args.repeats, args.against)
        return
    weights = args.shared / "weights" / "deit_tiny_patch16_224.safetensors"
    parent = spit.from_timm(weights) if weights.exists() else spit.create_model("vit_tiny_16")
    parent = parent.to(args.device).eval()
    for tokenizer in ("patch", "superpixel"):
        model = parent.with_tokenizer(tokenizer)
        measure(model, views, tokenizer, args.method or METHODS, args.repeats, args.against)


def measure(model: spit.SpitModel, views: torch.Tensor, tokens: str, methods: Sequence[str], repeats: int,
            base: str) -> None:
    """Print a row for each pass."""

    def forward(images: torch.Tensor) -> None:
        with torch.inference_mode():
            model(images)

    passes = {"forward": forward, **{name: partial(spit.explain, model, method=name)
                                     for name in dict.fromkeys([*methods, base]) if name != "forward"}}
    times: dict[str, list[float]] = {name: [] for name in passes}
    for turn, images in enumerate(views.chunk(repeats + 1)):  # the first turn compiles and warms up
        for name, call in passes.items():
            seconds = clocked(partial(call, images), images.device)
            if turn:
                times[name].append(seconds)
    for name, seconds in times.items():
        ratio = median(own / plain for own, plain in zip(seconds, times[base], strict=True))
        print(f"| {tokens} | {name} | {1e3 * median(seconds):.1f} | {ratio:.3f} |", flush=True)


def clocked(call: Callable[[], object], device: torch.device) -> float:
    """Seconds of one call, the device's work included."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


if __name__ == "__main__":
    launch(main)
