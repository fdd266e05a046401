"""Prop. 1 on real weights: our model on square patches is DeiT-Tiny.

    python benchmarks/deit.py

1,000 ImageNet validation images, one for each class, centre crop of 224 from a short side of 256.
The other side is timm's model where timm is installed, else the plain ViT of ``tests/paper``, which
shares no code with spit. Bar: the same argmax on 1,000 of 1,000.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from provenance import ROOT, arguments, import_timm, launch, print_provenance
from rich.progress import track
from safetensors.torch import load_file
from torch import Tensor

import spit
from spit.data.crops import central_square

sys.path.insert(0, str(ROOT / "tests"))
from paper.plain_vit import IMAGENET_MEAN, IMAGENET_STD, vit_logits

BATCH = 25


@torch.inference_mode()
def main() -> None:
    args = arguments(__doc__).parse_args()
    folder = args.shared / "data" / "imagenet_val1k"
    weights = args.shared / "weights" / "deit_tiny_patch16_224.safetensors"
    paths = sorted(folder.glob("*/*.webp"))
    if not paths or not weights.exists():
        raise spit.ImageError(f"expected images in {folder} and weights in {weights}; give their folder with --shared")
    print_provenance(f"imagenet_val1k, {len(paths)} images; {weights.name}")
    ours = spit.from_timm(weights)
    name, theirs = independent_vit(weights)
    same, right, gap = 0, 0, 0.0
    for start in track(range(0, len(paths), BATCH), "images"):
        batch = paths[start : start + BATCH]
        images = torch.stack([central_square(spit.load_image(path), 224) for path in batch])
        classes = torch.tensor([int(path.parent.name) for path in batch])
        logits, expected = ours(images), theirs(images)
        same += int((logits.argmax(1) == expected.argmax(1)).sum())
        right += int((logits.argmax(1) == classes).sum())
        gap = max(gap, float((logits - expected).abs().max()))
    print(f"same argmax as {name}: {same} of {len(paths)}")
    print(f"largest difference of a logit: {gap:.1e}")
    print(f"top-1: {right / len(paths):.1%}")


def independent_vit(weights: Path) -> tuple[str, Callable[[Tensor], Tensor]]:
    tensors = load_file(weights)
    try:
        timm = import_timm()
    except ImportError:
        return "a plain ViT", lambda images: vit_logits(tensors, images, heads=3)
    model = timm.create_model("deit_tiny_patch16_224", pretrained=False).eval()
    model.load_state_dict(tensors)
    mean, std = IMAGENET_MEAN[:, None, None], IMAGENET_STD[:, None, None]
    return f"timm {timm.__version__}", lambda images: model((images.float() / 255 - mean) / std)


if __name__ == "__main__":
    launch(main)
