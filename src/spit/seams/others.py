"""Vision transformers of torchvision and open_clip, and DINOv2 and DINOv3 as torch.hub loads them.

A wrapped module answers as it does itself: with logits (torchvision), the image's embedding (open_clip), the class
token (DINO). torchvision and open_clip take images of one size; for other sizes their positions are resampled.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from spit.seams.named import NamedViT
from spit.seams.names import OPENAI_MEAN, OPENAI_STD, Names
from spit.seams.seam import Grid

TORCHVISION = Names(embeddings="", patch="conv_proj", prefix=("class_token",), table="encoder.pos_embedding",
                    enter=("encoder.dropout",), blocks="encoder.layers", norm="encoder.ln", pool="", heads=("heads",))
OPEN_CLIP = Names(embeddings="", patch="conv1", prefix=("class_embedding",), table="positional_embedding",
                  enter=("ln_pre",), blocks="transformer.resblocks", norm="ln_post", pool="",
                  mean=OPENAI_MEAN, std=OPENAI_STD, crop=1.0)
DINO = Names(embeddings="", patch="patch_embed.proj", after="patch_embed.norm",
             prefix=("cls_token", "register_tokens", "storage_tokens"), table="pos_embed", enter=(), blocks="blocks",
             norm="norm", pool="", heads=("head",))


class TorchvisionViT(NamedViT):
    """``torchvision.models.VisionTransformer``."""

    def __init__(self, module: Any) -> None:
        super().__init__(module, TORCHVISION, module.image_size, module.encoder.layers[0].num_heads)
        layers = [layer for layer in module.heads.modules() if isinstance(layer, nn.Linear)]
        self.num_classes = layers[-1].out_features if layers else 0

    @property
    def blocks(self) -> Sequence[nn.Module]:
        return cast(Sequence[nn.Module], nn.ModuleList(super().blocks))

    def answer(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        return watched(self.body.encoder, self.body, images)


class OpenClipViT(NamedViT):
    """``open_clip.transformer.VisionTransformer``: the ``visual`` of a CLIP model."""

    def __init__(self, module: Any) -> None:
        super().__init__(module, OPEN_CLIP, module.image_size, module.transformer.resblocks[0].attn.num_heads)
        if module.attn_pool is not None or module.pool_type not in ("tok", "avg"):
            raise TypeError("expected a vision transformer of open_clip that pools by its class token or the mean, got "
                            f"{'attention pooling' if module.attn_pool is not None else repr(module.pool_type)}; "
                            "spit.pool(features, partition) takes its tokens as a feature map")
        self.reads_class = module.pool_type == "tok"
        self.mean = tuple(getattr(module, "image_mean", None) or self.mean)
        self.std = tuple(getattr(module, "image_std", None) or self.std)

    @property
    def norm(self) -> nn.Module:
        return nn.Identity() if self.body.final_ln_after_pool else super().norm

    def summarize(self, rows: Tensor) -> Tensor:
        pooled = rows[:, 0] if self.reads_class else rows[:, 1:].mean(1)
        pooled = self.body.ln_post(pooled) if self.body.final_ln_after_pool else pooled
        return pooled if self.body.proj is None else pooled @ self.body.proj

    @property
    def summary_width(self) -> int:
        return self.width if self.body.proj is None else int(self.body.proj.shape[1])

    def answer(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        rows, pooled = watched(self.body.transformer, self.body, images)
        return self.norm(rows), pooled[0] if isinstance(pooled, tuple) else pooled


class HubDinov2(NamedViT):
    """``DinoVisionTransformer`` of github.com/facebookresearch/dinov2."""

    def __init__(self, module: Any) -> None:
        super().__init__(module, DINO, module.patch_embed.img_size, module.num_heads)

    @property
    def blocks(self) -> Sequence[nn.Module]:
        """The blocks, also of a model that has them in chunks."""
        chunks = (chunk if isinstance(chunk, nn.ModuleList) else [chunk] for chunk in self.body.blocks)
        return cast(Sequence[nn.Module], nn.ModuleList(
            block for chunk in chunks for block in chunk if not isinstance(block, nn.Identity)))

    def answer(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        found = self.body.forward_features(images)
        prefix = (found["x_norm_clstoken"][:, None], found.get("x_norm_regtokens", found.get("x_storage_tokens")))
        return torch.cat([*prefix, found["x_norm_patchtokens"]], 1), self.body(images)


class HubDinov3(HubDinov2):
    """``DinoVisionTransformer`` of github.com/facebookresearch/dinov3: rotary positions."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        if module.cls_norm is not None:
            raise TypeError("expected a DINOv3 with one final norm, got one that has another for its class token")

    def rotation(self, grid: Grid) -> Tensor | None:
        return torch.stack(self.body.rope_embed(H=grid[0], W=grid[1]), 1)[None, None]

    def run(self, block: nn.Module, rows: Tensor, rotation: Tensor | None) -> Tensor:
        return cast(Tensor, block(rows, None if rotation is None else (rotation[..., 0, :], rotation[..., 1, :])))


def watched(part: nn.Module, module: Callable[[Tensor], Any], images: Tensor) -> tuple[Tensor, Any]:
    """What a part of a module returned while it ran, and what the module returned."""
    seen: list[Tensor] = []
    handle = part.register_forward_hook(lambda _, __, output: seen.append(output))
    try:
        answer = module(images)
    finally:
        handle.remove()
    return seen[0], answer
