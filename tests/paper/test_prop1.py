"""Prop. 1 and Lemma 1 (App. A): on square patches, with gradient-excluding φ, our model is a ViT.

The other side of each comparison is ``plain_vit``, which shares no code with spit.
"""

from pathlib import Path

import numpy
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from paper.plain_vit import vit_embeddings, vit_logits
from spit.features import FeatureExtractor
from spit.interop.timm import from_timm
from spit.tokenizers import PatchTokenizer

SHARED = Path(__file__).parents[3] / "shared"


def random_vit(width=12, depth=2, patch=4, grid=3, classes=5, qkv_bias=True, layer_scale=False, class_position=True):
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator) * 0.3

    weights = {
        "cls_token": draw(1, 1, width),
        "pos_embed": draw(1, grid**2 + class_position, width),
        "patch_embed.proj.weight": draw(width, 3, patch, patch),
        "patch_embed.proj.bias": draw(width),
        "norm.weight": draw(width) + 1,
        "norm.bias": draw(width),
        "head.weight": draw(classes, width),
        "head.bias": draw(classes),
    }
    shapes = {"norm1": (width,), "attn.qkv": (3 * width, width), "attn.proj": (width, width), "norm2": (width,),
              "mlp.fc1": (2 * width, width), "mlp.fc2": (width, 2 * width)}
    for block in (f"blocks.{index}" for index in range(depth)):
        for name, shape in shapes.items():
            weights[f"{block}.{name}.weight"] = draw(*shape)
            weights[f"{block}.{name}.bias"] = draw(shape[0])
        if not qkv_bias:
            del weights[f"{block}.attn.qkv.bias"]
        if layer_scale:
            weights |= {f"{block}.ls{branch}.gamma": draw(width) for branch in (1, 2)}
    return weights


def random_images(side, batch=3):
    return torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("options", [
    {}, {"qkv_bias": False}, {"layer_scale": True}, {"class_position": False}, {"patch": 5, "grid": 4, "depth": 1},
])
def test_logits_of_a_random_vit(options):
    weights = random_vit(**options)
    images = random_images(options.get("patch", 4) * options.get("grid", 3))
    model = from_timm(weights, heads=3)
    torch.testing.assert_close(model(images), vit_logits(weights, images, heads=3), atol=1e-4, rtol=1e-4)


def test_other_colors_than_imagenets_are_folded_into_the_embedding():
    weights, images, half = random_vit(), random_images(12), torch.full((3,), 0.5)
    model = from_timm(weights, heads=3, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    expected = vit_logits(weights, images, heads=3, mean=half, std=half)
    torch.testing.assert_close(model(images), expected, atol=1e-4, rtol=1e-4)
    assert (from_timm(weights, heads=3)(images) - expected).abs().max() > 1e-2


@pytest.mark.parametrize("side", [4, 7])
def test_lemma_1_features_are_the_patches(side):
    """φ ∘ τ* = vec where the resolution is the patch size."""
    images = random_images(3 * side)
    extractor = FeatureExtractor(resolution=side, gradients=False, normalization="none")
    features = extractor(images, PatchTokenizer(side)(images)).values[:, : 3 * side**2]
    patches = images.float().div(255).unfold(2, side, side).unfold(3, side, side)  # (B, C, 3, 3, side, side)
    expected = patches.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(0, 2)
    torch.testing.assert_close(features, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("sigma", [0.0, 0.025])
def test_positions_are_proportional_to_the_identity(sigma):
    """H = W = β² = ρ²: the histograms of the N = β² patches are c·I, with c = 1 for empirical ones."""
    images = random_images(16, batch=1)
    extractor = FeatureExtractor(resolution=4, position_bins=4, position_sigma=sigma, gradients=False)
    positions = extractor(images, PatchTokenizer(4)(images)).values[:, 3 * 16 :]  # (N, β²)
    scale = positions[0, 0].item()
    assert scale > 0
    assert sigma > 0 or scale == 1
    torch.testing.assert_close(positions, scale * torch.eye(16), atol=1e-5 * scale, rtol=1e-5)


@pytest.mark.parametrize("sigma", [0.0, 0.025])
def test_embeddings_are_those_of_vit_up_to_the_scale(sigma):
    """``[L, Q/c] [z, c·I] = L z + Q``, the remark after Prop. 1."""
    weights, images = random_vit(patch=4, grid=4), random_images(16)
    extractor = FeatureExtractor(resolution=4, position_bins=4, position_sigma=sigma, gradients=False,
                                 normalization="imagenet")
    features = extractor(images, PatchTokenizer(4)(images)).values
    scale = features[0, 3 * 16]
    kernel = torch.cat([weights["patch_embed.proj.weight"].flatten(1), weights["pos_embed"][0, 1:].T / scale], 1)
    embeddings = features @ kernel.T + weights["patch_embed.proj.bias"]
    expected = vit_embeddings(weights, images)[:, 1:].flatten(0, 1)
    torch.testing.assert_close(embeddings, expected, atol=1e-4, rtol=1e-4)


def photos(count):
    folders = sorted((SHARED / "data" / "imagenet_val1k").iterdir())
    for folder in folders[:: len(folders) // count][:count]:
        image = Image.open(next(folder.iterdir())).convert("RGB")
        left, top = (image.width - 224) // 2, (image.height - 224) // 2
        crop = numpy.array(image.crop((left, top, left + 224, top + 224)))
        yield torch.from_numpy(crop).movedim(-1, 0)


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "weights").is_dir() or not (SHARED / "data" / "imagenet_val1k").is_dir(),
                    reason=f"no DeiT weights or ImageNet images under {SHARED}")
@torch.inference_mode()
def test_deit_tiny_is_our_model():
    path = SHARED / "weights" / "deit_tiny_patch16_224.safetensors"
    images = torch.stack(list(photos(6)))
    logits, expected = from_timm(path)(images), vit_logits(load_file(path), images, heads=3)
    torch.testing.assert_close(logits, expected, atol=1e-3, rtol=1e-4)
    assert torch.equal(logits.argmax(1), expected.argmax(1))
    assert logits.argmax(1).unique().numel() > 3
