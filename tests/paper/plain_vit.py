"""A ViT written out from timm's names: a convolution for the patch embedding and an explicit softmax.

It shares no code with spit; the paper's equivalences and ``benchmarks/deit.py`` are checked against it.
"""

import torch
from torch.nn.functional import conv2d, gelu, layer_norm, linear

IMAGENET_MEAN, IMAGENET_STD = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])


def vit_embeddings(weights, images, mean=IMAGENET_MEAN, std=IMAGENET_STD):
    """γ* ∘ φ* ∘ τ* with the class token, ``(B, N + 1, D)``."""
    colors = (images.float() / 255 - mean[:, None, None]) / std[:, None, None]
    kernel = weights["patch_embed.proj.weight"]
    patches = conv2d(colors, kernel, weights["patch_embed.proj.bias"], stride=kernel.shape[-1]).flatten(2).mT
    class_token = weights["cls_token"].expand(len(images), -1, -1)
    positions = weights["pos_embed"]
    if positions.shape[1] == patches.shape[1]:  # DeiT III: no position for the class token
        return torch.cat([class_token, patches + positions], 1)
    return torch.cat([class_token, patches], 1) + positions


def vit_logits(weights, images, heads, **colors):
    x = vit_embeddings(weights, images, **colors)
    batch, count, width = x.shape

    def norm(name, values):
        return layer_norm(values, (width,), weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-6)

    depth = sum(name.endswith("norm1.weight") for name in weights)
    for block in (f"blocks.{index}" for index in range(depth)):
        qkv = linear(norm(f"{block}.norm1", x), weights[f"{block}.attn.qkv.weight"],
                     weights.get(f"{block}.attn.qkv.bias"))
        q, k, v = qkv.view(batch, count, 3, heads, -1).permute(2, 0, 3, 1, 4)
        mixed = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v
        branch = linear(mixed.transpose(1, 2).reshape(batch, count, width),
                        weights[f"{block}.attn.proj.weight"], weights[f"{block}.attn.proj.bias"])
        x = x + branch * weights.get(f"{block}.ls1.gamma", torch.ones(()))
        hidden = gelu(linear(norm(f"{block}.norm2", x), weights[f"{block}.mlp.fc1.weight"],
                             weights[f"{block}.mlp.fc1.bias"]))
        branch = linear(hidden, weights[f"{block}.mlp.fc2.weight"], weights[f"{block}.mlp.fc2.bias"])
        x = x + branch * weights.get(f"{block}.ls2.gamma", torch.ones(()))
    class_token = norm("norm", x)[:, 0]
    return linear(class_token, weights["head.weight"], weights["head.bias"])
