"""spit.wrap: the vision transformer that you have, on superpixels, with its own weights."""

from collections.abc import Callable, Sequence
from typing import get_args

import torch
from torch import Tensor, nn

from spit.config import ModelConfig
from spit.errors import WeightsError
from spit.images import Images
from spit.model import SpitModel
from spit.options import check_choice
from spit.partition import Partition
from spit.seams.crops import Embed, Place
from spit.seams.model import WrappedModel
from spit.seams.seam import Seam, find_seam

TOLERANCE = 1e-4  # largest difference from the backbone's own answer on squares, over the largest value


def wrap(backbone: nn.Module, tokenizer: str | Callable[[Images], Partition] = "superpixel", embed: Embed = "crop",
         place: Place = "centroid", *, mean: Sequence[float] | None = None,
         std: Sequence[float] | None = None, class_names: Sequence[str] | None = None) -> SpitModel:
    """A vision transformer of timm, transformers or another library on superpixel tokens, without training.

    Each region becomes a token by the backbone's own patch embedding, with its own positions, prefix tokens, blocks,
    pooling and head. The backbone is not changed: its parameters are shared, under their own names. On square patches
    the answer is the backbone's own; this is checked once, here.

    Args:
        backbone: in evaluation mode; docs/backbones.md lists the families. :func:`spit.register_seam` adds one.
        tokenizer: a name or a tokenizer; superpixels are compact, and some 250 where the backbone has 196 patches.
        embed: what a token sees. "crop": one patch of pixels around the region's centroid, unscaled. "window": the
            square around the region, scaled to one patch. "pool": the mean of the image's patches in the region.
        place: how a token reads the table of positions: "centroid", between the four nearest cells, or "average", over
            all cells that the region covers.
        mean: of the colours that the backbone was trained with (default: its own configuration's, or ImageNet's).
            Images go in as for every model of spit: uint8, or floats in [0, 1], not normalised.
        std: their standard deviation.
        class_names: a name for each class (default: those of a transformers module's configuration; else ImageNet's if
            there are 1,000 classes, or numbers).

    Returns:
        A model of spit in evaluation mode: ``spit.Predictor(model)``, :func:`spit.explain`, :func:`spit.segment`,
        ``spit evaluate`` and training take it.

    Raises:
        TypeError: no seam for this class of backbone.
        ValueError: the backbone is in training mode.
        WeightsError: on square patches the answer is not the backbone's.

    Example:
        >>> import spit, torch
        >>> from transformers import ViTConfig, ViTModel
        >>> vit = ViTModel(ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=64)).eval()
        >>> model = spit.wrap(vit)
        >>> out = model(torch.rand(1, 3, 64, 64), record=())
        >>> out.partition.paint(out.tokens.values).shape
        torch.Size([1, 64, 64, 64])
    """
    if not isinstance(backbone, nn.Module) or isinstance(backbone, SpitModel):
        raise TypeError(f"expected a module of timm or transformers, got {type(backbone).__name__}" + (
            "; with_tokenizer gives a model of spit other tokens" if isinstance(backbone, SpitModel) else ""))
    check_choice("embed", embed, get_args(Embed))
    check_choice("place", place, get_args(Place))
    seam = find_seam(backbone)
    if backbone.training:
        raise ValueError("expected a backbone in evaluation mode, since dropout changes its answers; call .eval()")
    config = wrapped_config(seam, embed, place, mean, std)
    names = seam.class_names if class_names is None else tuple(class_names)
    model = WrappedModel(config.replace(class_names=names), seam).eval()
    check_squares(model, seam)
    other = model.with_tokenizer(tokenizer)
    model.tokenizer, model.config = other.tokenizer, other.config
    return model


def wrapped_config(seam: Seam, embed: Embed, place: Place, mean: Sequence[float] | None,
                   std: Sequence[float] | None) -> ModelConfig:
    """The config of a wrapped backbone on its own square patches."""
    colors = [[*map(float, values)] for values in (mean or seam.mean, std or seam.std)]
    if any(len(values) != seam.channels for values in colors) or not all(value > 0 for value in colors[1]):
        raise ValueError(f"expected mean and std of {seam.channels} channels, std above 0, got {colors[0]} and "
                         f"{colors[1]}; give spit.wrap(..., mean=, std=)")
    side = seam.size[0] if seam.size[0] == seam.size[1] else None
    return ModelConfig(
        tokenizer="patch", tokenizer_options={"size": seam.patch}, extractor="crops",
        extractor_options={"patch": seam.patch, "embed": embed, "place": place}, channels=seam.channels,
        backbone="wrapped", backbone_options={"mean": colors[0], "std": colors[1], **seam.source_options()},
        width=seam.width, depth=len(seam.blocks), heads=seam.heads, num_classes=seam.num_classes,
        token_budget=None, train_size=side, eval_size=side, eval_crop=seam.crop)


@torch.no_grad()
def check_squares(model: WrappedModel, seam: Seam) -> None:
    """Raise WeightsError if the model on square patches is not the backbone."""
    parameter = next(seam.module.parameters())
    random = torch.Generator().manual_seed(0)
    images = torch.rand(1, seam.channels, *seam.size, generator=random).to(parameter.device)
    mean, std = (torch.tensor(values, device=images.device)[:, None, None]
                 for values in (model.embedder.mean, model.embedder.std))
    tokens, logits = seam.answer(((images - mean) / std).to(parameter.dtype))
    encoded = model.encode(model.tokenize(images)[1])
    pairs: list[tuple[str, Tensor, Tensor]] = [("tokens", encoded.values, tokens.flatten(0, 1))]
    if logits is not None:
        pairs.append(("logits", model.head(model.summary(encoded)), logits))
    for name, got, expected in pairs:
        if got.shape != expected.shape:
            raise WeightsError(f"expected {name} of {type(seam.module).__name__} of shape {tuple(expected.shape)} on "
                               f"square patches, got {tuple(got.shape)} through its seam; the backbone computes "
                               "something else than its class does, so it is not wrapped")
        largest = max(1.0, float(expected.abs().max()))
        missed = float((got.float() - expected.float()).abs().max())
        limit = TOLERANCE if parameter.dtype == torch.float32 else 0.05
        if not missed <= limit * largest:
            raise WeightsError(f"expected {name} of {type(seam.module).__name__} on square patches within "
                               f"{limit * largest:.1e} of its own, got a difference of {missed:.1e}; the backbone "
                               "computes something else than its class does, so it is not wrapped")
