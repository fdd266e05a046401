"""Plain ViTs of transformers, by the table of :mod:`spit.seams.names`.

A wrapped module answers with its logits, or with its image embeddings if it ends in a projection; else with its pooled
output; else with the class token, or the mean of the tokens if there is none.

Ragged batches and attention maps need the attention implementation "sdpa", which is the default of transformers.
"""

from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from typing import Any, cast

import torch
from torch import Tensor, nn

from spit.seams.named import NamedViT, part
from spit.seams.names import NAMES
from spit.seams.seam import Grid, Seam, colors, find_seam

ARGUMENTS = {"add_pooling_layer": "pooler", "use_mask_token": "embeddings.mask_token"}  # constructors': what they add


class TransformersViT(NamedViT):
    """A class of :data:`spit.seams.names.NAMES`."""

    def __init__(self, module: Any) -> None:
        self.name = next(cls.__name__ for cls in type(module).__mro__ if cls.__name__ in NAMES)
        names = NAMES[self.name]
        self.config: Any = part(module, names.body).config
        super().__init__(module, names, self.side(), self.config.num_attention_heads)
        if names.heads and not names.embeds:
            self.num_classes = getattr(part(module, names.heads[0]), "out_features", module.config.num_labels)
            self.class_names = tuple(module.config.id2label.get(label, "") for label in range(self.num_classes))
            if all(name == f"LABEL_{label}" for label, name in enumerate(self.class_names)):  # not given
                self.class_names = ()

    def side(self) -> Any:
        """Side of the images, or height and width."""
        return self.config.image_size

    def run(self, block: nn.Module, rows: Tensor, rotation: Tensor | None) -> Tensor:
        if getattr(block, "gradient_checkpointing", False) and block.training:
            raise ValueError("a wrapped backbone does not compute its blocks twice; call "
                             "model.backbone.module.gradient_checkpointing_disable()")
        answer = block(rows, **self._options(rotation))
        return cast(Tensor, answer[0] if isinstance(answer, tuple) else answer)

    def _options(self, rotation: Tensor | None) -> dict[str, Any]:
        """What a block takes beside its rows."""
        return {"attention_mask": None} if self.names.masked else {}

    @property
    def summary_width(self) -> int:
        pooled = None if self.pool is None else getattr(self.config, "pooler_output_size", self.width)
        return super().summary_width if pooled is None or self.names.embeds else int(pooled)

    def answer(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        whole = self._call(self.module, images)
        found = (getattr(whole, name, None) for name in ("logits", "image_embeds", "pooler_output"))
        return self._call(self.body, images).last_hidden_state, next((one for one in found if one is not None), None)

    def _call(self, module: Any, images: Tensor) -> Any:
        return module(images, return_dict=True)

    def source_options(self) -> dict[str, Any]:
        cls, config = type(self.module), cast(Any, self.module.config)
        options = {"vision_config": own_options(self.config)} if hasattr(config, "vision_config") else (
            own_options(config))
        made = {argument: part(self.module, place) is not None for argument, place in ARGUMENTS.items()
                if argument in signature(cls).parameters}
        return {"source": f"hf:{self.name}", "options": {**options, **made, "num_labels": config.num_labels}}


class TransformersMae(TransformersViT):
    """``ViTMAEModel`` without its random masking."""

    def _call(self, module: Any, images: Tensor) -> Any:
        config, order = module.embeddings.config, torch.arange(self.grid[0] * self.grid[1], device=images.device)
        ratio, config.mask_ratio = config.mask_ratio, 0.0
        try:
            return module(images, noise=order.expand(len(images), -1), return_dict=True)
        finally:
            config.mask_ratio = ratio


class TransformersDinov3(TransformersViT):
    """``DINOv3ViTModel``: rotary positions."""

    def rotation(self, grid: Grid) -> Tensor | None:
        sized = next(self.module.parameters()).new_empty(1, 1, grid[0] * self.patch, grid[1] * self.patch)
        cosines, sines = self.body.rope_embeddings(sized)
        return torch.stack([sines, cosines], 1)[None, None]

    def _options(self, rotation: Tensor | None) -> dict[str, Any]:
        return {} if rotation is None else {"position_embeddings": (rotation[..., 1, :], rotation[..., 0, :])}


class TransformersClip(TransformersViT):
    """CLIP. Its last norm is for all tokens here, as in timm; its own class applies it to the class token alone."""

    def answer(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        rows, embedded = super().answer(images)
        return self.norm(rows), embedded


class TransformersSiglip2(TransformersViT):
    """SigLIP 2, which takes patches, and the size of each image in patches."""

    def side(self) -> int:
        return int(round(self.config.num_patches**0.5) * self.config.patch_size)

    def describe(self, layer: Any) -> tuple[int, int]:
        return self.config.patch_size, self.config.num_channels

    def embed(self, patches: Tensor) -> Tensor:
        layer = self.embeddings.patch_embedding
        answer: Tensor = layer(self._channels_last(patches).to(layer.weight.dtype))
        return answer

    def _channels_last(self, patches: Tensor) -> Tensor:
        return cast(Tensor, patches.unflatten(-1, (self.channels, -1)).mT.flatten(-2))

    def positions(self, grid: Grid) -> Tensor | None:
        table = self.embeddings.position_embedding.weight.unflatten(0, self.grid)
        answer: Tensor = self.embeddings.resize_positional_embeddings(table, torch.tensor([grid]), grid[0] * grid[1])[0]
        return answer

    def _call(self, module: Any, images: Tensor) -> Any:
        patches = self._channels_last(nn.functional.unfold(images, self.patch, stride=self.patch).mT)
        return module(patches, pixel_attention_mask=patches.new_ones(patches.shape[:2]), return_dict=True,
                      spatial_shapes=torch.tensor([self.grid]).expand(len(images), -1))


class TransformersAimv2(TransformersViT):
    """AIMv2. A native one computes its positions for each size, and adds them to what is embedded."""

    def positions(self, grid: Grid) -> Tensor | None:
        if not self.config.is_native:
            return super().positions(grid)
        blank = next(self.module.parameters()).new_zeros(1, self.channels, grid[0] * self.patch, grid[1] * self.patch)
        answer: Tensor = self.embeddings(blank)[0] - self.embed(blank[..., : self.patch, : self.patch].flatten(1))
        return answer


class TransformersBeit(TransformersViT):
    """BEiT and data2vec: a bias for each pair of cells, in each block or shared."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.biased = self.config.use_relative_position_bias or self.config.use_shared_relative_position_bias
        self.reads_class = self.pool is None or not self.config.use_mean_pooling

    def _options(self, rotation: Tensor | None) -> dict[str, Any]:
        if hasattr(self.body, "encoder"):  # data2vec
            shared, argument = getattr(self.body.encoder, "relative_position_bias", None), "relative_position_bias"
        else:
            shared, argument = self.body.shared_position_bias, "attention_mask"
        return {"resolution": self.size, argument: None if shared is None else shared(self.grid)}


def timm_inside(module: Any) -> Seam:
    """The seam of the timm module in a ``TimmWrapperModel``, with the colours of the wrapper's config."""
    seam = find_seam(module.timm_model)
    described = module.config.pretrained_cfg or {}
    seam.mean, seam.std = colors(described, "mean", seam.mean), colors(described, "std", seam.std)
    return seam


def module_of(name: str, options: Mapping[str, Any]) -> nn.Module:
    """A module with new weights, from what :meth:`TransformersViT.source_options` said.

    Args:
        name: of a class in :data:`NAMES`.
        options: of its config, and of :data:`ARGUMENTS`.

    Raises:
        ValueError: no such class, or options that do not make one.
    """
    if name not in NAMES:
        raise ValueError(f"expected one of {', '.join(NAMES)} of transformers, got {name!r}")
    cls = getattr(import_module("transformers"), name)
    arguments = {key: value for key, value in options.items() if key in ARGUMENTS and key in signature(cls).parameters}
    try:
        if unknown := options.keys() - own_parameters(cls.config_class) - arguments.keys():
            raise ValueError(f"it has no option {', '.join(sorted(unknown))}")
        config = cls.config_class(**{key: value for key, value in options.items() if key not in arguments})
        config._attn_implementation = "sdpa"  # the name of a repository would have its code fetched and run
        module: nn.Module = cls(config, **arguments)
    except Exception as error:
        raise ValueError(f"expected options that make a {name}, got others: {' '.join(str(error).split())}") from error
    return module.eval()


def own_options(config: Any) -> dict[str, Any]:
    """What a config states beside that which every config does."""
    return {key: value for key, value in config.to_dict().items() if key in own_parameters(type(config))}


def own_parameters(config: type) -> set[str]:
    """Names of the options of a class of configs, without those that every config has."""
    common = signature(import_module("transformers").PreTrainedConfig).parameters
    return {key for key in signature(config).parameters if key not in common and key[0] != "_"} | {
        "num_labels", "vision_use_head"}
