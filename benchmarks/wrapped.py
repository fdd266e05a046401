"""DeiT-Tiny's own weights on superpixels, without training: accuracy beside its square patches, agreement, and speed.

    python benchmarks/wrapped.py                       # 1,000 ImageNet validation images at 224 px, one for each class
    python benchmarks/wrapped.py --images 100 --rounds 0
    python benchmarks/wrapped.py --rounds 0 --tokenizer superpixel,method=tree,compactness=10,max_tokens=196

The weights are read into timm's deit_tiny_patch16_224. Rows are that module on its own squares; spit.wrap with its
defaults, and with each option for what a token sees and where it lies; and spit.from_timm on superpixels. With
--tokenizer the rows after the defaults are these tokenizers instead. Each is compared with the squares on the same
images: the difference of top-1 in points with its paired 95 % interval, and the mean KL divergence of the class
probabilities; and with the defaults in both, a KL below theirs being negative. R² is the explained variation: how
closely regions follow the image. The largest difference of a logit follows between three ways to the same model:
spit.wrap of timm's module, spit.wrap of transformers' ViT with the same weights, and spit.from_timm. The speed is the
median of interleaved rounds on images that have exactly as many superpixels as patches, 196.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from provenance import PARENT, arguments, import_timm, launch, print_provenance
from rich.progress import track
from safetensors.torch import load_file
from torch import Tensor

import spit
from spit.data.crops import central_square
from spit.evaluation.intervals import Score, difference, mean, proportion
from spit.evaluation.superpixels import explained_variation
from spit.evaluation.tokenizers import read_tokenizer
from spit.kernels.tables import IMAGENET_MEAN, IMAGENET_STD

NAME = "deit_tiny_patch16_224"
SIZE, TOKENS = 224, 196
BATCH = 25
DEFAULTS = "`spit.wrap(vit)`"
COMPARED = 50  # images of the agreement
Model = Callable[[Tensor], Tensor]
VIT_NAMES = {  # timm's name: that of transformers' ViTForImageClassification
    "cls_token": "vit.embeddings.cls_token", "pos_embed": "vit.embeddings.position_embeddings",
    "patch_embed.proj": "vit.embeddings.patch_embeddings.projection", "norm": "vit.layernorm", "head": "classifier",
    "norm1": "layernorm_before", "norm2": "layernorm_after", "attn.proj": "attention.o_proj", "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2"}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", type=int, help="only so many, spread over the set (default: all)")
    parser.add_argument("--data", type=Path, help="a folder for each class (default: data/imagenet_val1k of --shared)")
    parser.add_argument("--weights", type=Path, help=f"default: {PARENT} of --shared")
    parser.add_argument("--tokenizer", action="append", default=[], metavar="NAME[,OPTION=VALUE]",
                        help="of a row; options left out are those of spit.wrap; repeat it for several")
    parser.add_argument("--rounds", type=int, default=15, help="of the speed; 0 leaves it out")
    parser.add_argument("--batch", type=int, default=8, help="images in a batch of the speed")
    args = parser.parse_args()
    folder, weights = args.data or args.shared / "data" / "imagenet_val1k", args.weights or args.shared / PARENT
    paths = sorted(folder.glob("*/*.webp"))
    if not paths or not weights.is_file():
        raise spit.ImageError(f"expected images in {folder} and weights in {weights}; see docs/data.md")
    paths = paths[:: max(1, len(paths) // args.images)][: args.images] if args.images else paths
    try:
        timm = import_timm()
    except ImportError as error:
        raise spit.MissingExtra("timm", "timm", "measuring its ViT") from error
    vit = timm.create_model(NAME).eval()
    vit.load_state_dict(load_file(weights))
    print_provenance(f"{folder.name}, {len(paths)} images at {SIZE} px; {weights.name}; timm {timm.__version__}")
    with torch.inference_mode():
        accuracy(vit, paths, args.tokenizer)
        agreement(vit, paths[:: max(1, len(paths) // COMPARED)][:COMPARED])
        if args.rounds:
            speed(vit, squares_of(paths[: args.batch]), args.rounds)


def accuracy(vit: Any, paths: Sequence[Path], tokenizers: Sequence[str]) -> None:
    """Print top-1 of all rows."""
    wrapped = spit.wrap(vit)
    models: dict[str, Any] = {"square patches": wrapped.with_tokenizer("patch"), DEFAULTS: wrapped}
    for text in tokenizers:
        name, options = read_tokenizer(text)
        models[f"`{text}`"] = wrapped.with_tokenizer(name, **options)
    if not tokenizers:
        models |= {
            '`place="average"`': spit.wrap(vit, place="average"),
            '`embed="window"`': spit.wrap(vit, embed="window"),
            '`embed="pool"`': spit.wrap(vit, embed="pool"),
            '`spit.from_timm(vit).with_tokenizer("superpixel")`': spit.from_timm(vit).with_tokenizer("superpixel")}
    right: dict[str, list[float]] = {name: [] for name in models}
    divergence: dict[str, list[float]] = {name: [] for name in models}
    tokens: dict[str, list[int]] = {name: [] for name in models}
    explained: dict[str, list[float]] = {name: [] for name in models}
    missed = 0.0
    for start in track(range(0, len(paths), BATCH), "images"):
        batch = paths[start : start + BATCH]
        images, classes = squares_of(batch), torch.tensor([int(path.parent.name) for path in batch])
        own = vit(normalized(images))
        expected = own.log_softmax(1)
        for name, model in models.items():
            out = model(images, record=())
            right[name] += (out.logits.argmax(1) == classes).tolist()
            divergence[name] += (expected.exp() * (expected - out.logits.log_softmax(1))).sum(1).tolist()
            tokens[name] += out.partition.host_counts
            explained[name] += [explained_variation(image.permute(1, 2, 0).numpy(), labels.numpy())
                                for image, labels in zip(images, out.partition.labels, strict=True)]
            if name == "square patches":
                missed = max(missed, float((out.logits - own).abs().max()))
    print("| tokens | mean count | R² | top-1 | points to squares | KL to squares | points to defaults | "
          "KL to defaults' |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, answers in right.items():
        own_score = proportion([answers])
        points, more_points = (interval(difference([answers], [right[base]]), 100, 1)
                               for base in ("square patches", DEFAULTS))
        print(f"| {name} | {sum(tokens[name]) / len(paths):.0f} | {mean(explained[name]).value:.3f} | "
              f"{own_score.value:.1%} ({own_score.low:.1%} to {own_score.high:.1%}) | {points} | "
              f"{mean(divergence[name]).value:.3f} | {more_points} | "
              f"{interval(difference([divergence[name]], [divergence[DEFAULTS]]), 1, 3)} |")
    print(f"\nsquare patches: largest difference of a logit from timm's own {missed:.1e}")


def interval(score: Score, factor: float, digits: int) -> str:
    """A difference with its interval."""
    value, low, high = (f"{factor * number:+.{digits}f}" for number in (score.value, score.low, score.high))
    return f"{value} ({low} to {high})"


def agreement(vit: Any, paths: Sequence[Path]) -> None:
    """Print how far three ways to one model are from each other on the same superpixels."""
    base = spit.wrap(vit)
    others = {"spit.from_timm": spit.from_timm(vit).with_tokenizer(base.tokenizer)}
    try:
        theirs = transformers_vit(vit)
        others["spit.wrap of transformers' ViT"] = spit.wrap(theirs, base.tokenizer, mean=IMAGENET_MEAN,
                                                             std=IMAGENET_STD)
    except (ImportError, TypeError) as error:
        print(f"transformers is left out: {error}")
    images = squares_of(paths)
    expected = base(images)
    for name, model in others.items():
        print(f"{name}: largest difference of a logit from spit.wrap of timm's on superpixels of {len(paths)} images "
              f"{float((model(images) - expected).abs().max()):.1e}, of logits up to {float(expected.abs().max()):.1f}")


def transformers_vit(vit: Any) -> Any:
    """The same model as a ViTForImageClassification of transformers."""
    from transformers import ViTConfig, ViTForImageClassification

    block = vit.blocks[0]
    config = ViTConfig(hidden_size=vit.embed_dim, num_hidden_layers=len(vit.blocks), num_labels=vit.num_classes,
                       num_attention_heads=block.attn.num_heads, intermediate_size=block.mlp.fc1.out_features,
                       image_size=SIZE, patch_size=SIZE // vit.patch_embed.grid_size[0], layer_norm_eps=vit.norm.eps)
    model = ViTForImageClassification(config).eval()
    model.load_state_dict(renamed(vit.state_dict()))
    return model


def renamed(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """A state dict of timm's ViT under the names of transformers."""
    found = {}
    for name, tensor in tensors.items():
        stem, kind = name, ""
        if name.endswith((".weight", ".bias")):
            stem, _, kind = name.rpartition(".")
        block, inside = "", stem
        if stem.startswith("blocks."):
            _, index, inside = stem.split(".", 2)
            block = f"vit.layers.{index}."
        if inside == "attn.qkv":
            for part, rows in zip("qkv", tensor.chunk(3), strict=True):
                found[f"{block}attention.{part}_proj.{kind}"] = rows
        else:
            found[f"{block}{VIT_NAMES[inside]}{f'.{kind}' if kind else ''}"] = tensor
    return found


def speed(vit: Any, images: Tensor, rounds: int) -> None:
    """Print the times of timm's forward on squares and of the wrapped module on as many superpixels."""
    model = spit.wrap(vit)
    tokenizer = model.tokenizer
    exact = tokenizer.hierarchy(images).at(TOKENS)
    features = model.extractor(images, exact)
    inputs = normalized(images)
    steps: dict[str, Callable[[], Any]] = {
        "timm, squares": lambda: vit(inputs),
        "wrapped, γ f h": lambda: model.head(model.summary(model.encode(features))),
        "wrapped, φ": lambda: model.extractor(images, exact),
        "wrapped, τ": lambda: tokenizer(images)}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if turn:  # the first round warms up
                times[name].append(1000 * (time.perf_counter() - start) / len(images))
    base = median(times["timm, squares"])
    print(f"\n{TOKENS} tokens an image, batches of {len(images)}, {torch.get_num_threads()} threads, fp32, median of "
          f"{rounds} interleaved rounds; τ makes {tokenizer(images).host_counts[0]} tokens of the first image\n")
    print("| step | ms/image | of timm's |\n|---|---:|---:|")
    for name, spent in times.items():
        print(f"| {name} | {median(spent):.2f} | {median(spent) / base:.2f} |")


def squares_of(paths: Sequence[Path]) -> Tensor:
    """Central squares, uint8."""
    return torch.stack([central_square(spit.load_image(path), SIZE) for path in paths])


def normalized(images: Tensor) -> Tensor:
    """What timm's module takes."""
    mean_color, deviation = (torch.tensor(values)[:, None, None] for values in (IMAGENET_MEAN, IMAGENET_STD))
    return (images.float() / 255 - mean_color) / deviation


if __name__ == "__main__":
    launch(main)
