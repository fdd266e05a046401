"""Are partitions exact? Complete, 4-connected, nested, equal on every backend and in every batch.

    python benchmarks/partitions.py

Over the 200 test images of BSDS500; the last part asks the same of a model's logits.
"""

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from provenance import arguments, bsds_images, launch, print_provenance
from rich.progress import track
from skimage.measure import label as connected_components
from torch import Tensor

import spit
from spit import kernels

SEED = 0
TOLERANCE = 1e-4


def main() -> None:
    args = arguments(__doc__).parse_args()
    paths = bsds_images(args.shared)
    print_provenance(f"BSDS500 test, {len(paths)} images", SEED)
    images = [spit.load_image(path) for path in paths]
    check_partitions(images)
    check_batches(images)
    check_logits(images, args.shared / "weights" / "deit_tiny_patch16_224.safetensors")


def check_partitions(images: list[Tensor]) -> None:
    tokenizer = spit.SuperpixelTokenizer()
    good: Counter[str] = Counter()
    for image in track(images, "every image, both backends"):
        hierarchy = tokenizer.hierarchy(image)
        with kernels.backend("reference"):
            reference = tokenizer.hierarchy(image)
        good["numba equals reference at every level"] += all(
            torch.equal(ours, theirs) for ours, theirs in zip(hierarchy.parents, reference.parents, strict=True)
        )
        maps = [partition.labels[0].numpy() for partition in hierarchy]
        good["complete: labels 0 … N − 1 all in use"] += all(
            np.array_equal(np.unique(labels), np.arange(count))
            for labels, count in zip(maps, hierarchy.counts[:, 0].tolist(), strict=True)
        )
        good["every region 4-connected"] += all(is_connected(labels) for labels in maps)
        good["nested"] += all(is_refinement(fine, coarse) for fine, coarse in pairwise(maps))
    for claim, count in good.items():
        print(f"{claim:45s} {count} of {len(images)}")


def check_batches(images: list[Tensor]) -> None:
    generator = random.Random(SEED)
    for tokenizer in (spit.SuperpixelTokenizer(), spit.VoronoiTokenizer(), spit.PatchTokenizer()):
        alone = [tokenizer(image).labels[0] for image in images]
        same = [True] * len(images)
        for size in (2, 7, 32, len(images)):
            order = generator.sample(range(len(images)), len(images))
            for start in track(range(0, len(order), size), f"{type(tokenizer).__name__}, batches of {size}"):
                batch = order[start : start + size]
                partition = tokenizer([images[i] for i in batch])
                for place, i in enumerate(batch):
                    same[i] &= torch.equal(partition[place].labels[0], alone[i])
        print(f"{type(tokenizer).__name__ + ': the same in any batch and order':45s} {sum(same)} of {len(images)}")


@torch.inference_mode()
def check_logits(images: list[Tensor], weights: Path) -> None:
    torch.manual_seed(SEED)
    models = {"spit_tiny_16, random weights": spit.create_model("spit_tiny_16", layer_scale=None).eval()}
    if weights.exists():
        models["DeiT-Tiny with superpixels"] = spit.from_timm(weights).with_tokenizer("superpixel").eval()
    for name, model in models.items():
        worst = 0.0
        for start in track(range(0, 160, 40), name):
            image = images[start]
            mates = images[start + 1 : start + 32]
            logits = [model([image, *mates[: size - 1]])[0] for size in (1, 8, 32)]
            worst = max(worst, *(float((other - logits[0]).abs().max()) for other in logits[1:]))
        verdict = "within" if worst <= TOLERANCE else "NOT within"
        print(f"{name}: logits in batches of 1, 8, 32 differ by {worst:.1e} "
              f"({verdict} {TOLERANCE:g}; logits of size {float(logits[0].abs().max()):.2f})")


def is_connected(labels: np.ndarray) -> bool:
    """True where the 4-connected components are as many as the labels, by scikit-image."""
    return int(connected_components(labels + 1, connectivity=1).max()) == len(np.unique(labels))


def is_refinement(fine: np.ndarray, coarse: np.ndarray) -> bool:
    """True where every region of ``fine`` lies in one region of ``coarse``."""
    pairs = np.unique(fine.astype(np.int64) * (int(coarse.max()) + 1) + coarse)
    return len(pairs) == len(np.unique(fine))


if __name__ == "__main__":
    launch(main)
