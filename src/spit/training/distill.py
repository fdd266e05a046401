"""Retrofit as a task: a pretrained patch ViT gets other tokens and learns its own answers again, without labels.

The student starts with all of its parent's weights; γ starts as the parent's patch embedding and its position
embedding, resampled to the student's bins. It then learns the parent's answers on the same crops: logits, class token
and, block by block and region by region, tokens.
"""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit import kernels
from spit.backbone.recorder import Recorder
from spit.config import ModelConfig
from spit.embedder import put_class_token, resize_patches
from spit.errors import WeightsError
from spit.features.color import NORMALIZATIONS
from spit.model import Output, SpitModel
from spit.options import Options, documented, option
from spit.seams.model import WrappedModel
from spit.seams.seam import find_seam
from spit.tokenizers import PatchTokenizer
from spit.tokens import Tokens
from spit.training.augment import fused
from spit.training.batches import Batch
from spit.training.elastic import ElasticConfig
from spit.training.recipe import ModelRecipe
from spit.training.task import Group, Task, decay_groups
from spit.training.validate import Validate
from spit.weights import check_tensors

ALIGNED = 8
"""Half-precision matrices with rows of a multiple of this length use a GPU's tensor cores without a copy."""
STUDENT: Mapping[str, Any] = {
    "tokenizer": "superpixel", "tokenizer_options": {"compactness": 0.8, "self_loop": "none"}, "fill": "image",
    "gradients": True,
    "position_bins": 16, "position_sigma": 0.025, "gradient_bins": 16, "gradient_sigma": 0.025}
"""Options of a student that differ from its parent's: superpixels that are round and of equal size, seen in whole
squares, are near to the patches that the parent knows (docs/training.md)."""


@documented
@dataclass(frozen=True)
class DistillConfig(Options):
    """``[distill]``: what the student learns from."""

    logits: float = option(1.0, "Weight of KL(parent ‖ student)", least=0)
    class_token: float = option(1.0, "Weight of the smooth L1 distance of class tokens", least=0)
    tokens: float = option(10.0, "Weight of the distance of tokens after each block: a region's token should be the "
                                 "mean of the parent's tokens over its pixels", least=0)
    sizes: tuple[int, ...] = option((), "Further sides of the square that the parent sees: the logits and the class "
                                        "token to learn are means over these and data.size", least=1)
    embedder_rate: float = option(4.0, "Learning rate of γ over that of the rest", above=0)
    head_rate: float = option(1.0, "Learning rate of the class head over that of the rest; 0 keeps the parent's",
                              least=0)
    keep: float = option(0.0, "Saved and validated weights = keep · initial + (1 − keep) · trained; the initial ones "
                              "are made from the parent's, also if model.pretrained is set", least=0, below=1)


def student_of(parent: SpitModel, options: Mapping[str, Any]) -> SpitModel:
    """A model with the parent's weights and another τ; its options go over :data:`STUDENT` and the parent's.

    A wrapped backbone keeps its own patch embedding, on crops, and gets a branch that sees the region, from 0.
    """
    patch_side(parent)
    if isinstance(parent, WrappedModel):
        config = parent.with_tokenizer("superpixel").config
        seen = {**config.extractor_options, "region": True}
        config = ModelRecipe(options=options).apply_to(config.replace(extractor_options=seen))
        return WrappedModel(config, find_seam(copy.deepcopy(parent.backbone.module)))
    student = SpitModel(ModelRecipe(options=options).apply_to(parent.config.replace(**STUDENT)))
    student.load_state_dict(inherited(parent, student))
    return student


def teacher_of(parent: SpitModel) -> SpitModel:
    """The parent on square patches, which a wrapped backbone knows whatever its tokens are."""
    return parent.with_tokenizer("patch", size=patch_side(parent)) if isinstance(parent, WrappedModel) else parent


def patch_side(parent: SpitModel) -> int:
    """The side of the parent's patches; WeightsError if it has other tokens."""
    if isinstance(parent, WrappedModel):
        return parent.extractor.patch
    if not isinstance(parent.tokenizer, PatchTokenizer):
        raise WeightsError(f"expected a parent with square patches, got one with {parent.config.tokenizer} tokens; "
                           "load a ViT with spit.from_timm")
    return parent.tokenizer.size


def inherited(parent: SpitModel, student: SpitModel) -> dict[str, Tensor]:
    """The weights that a student starts with: the parent's, with γ for other patches, bins and colours.

    New features start at 0, and a LayerScale that the parent does not have at the student's own value.
    """
    config, wanted = parent.config, student.config
    if isinstance(student, WrappedModel):
        new = {name: torch.zeros_like(tensor) for name, tensor in student.state_dict().items() if "branch" in name}
        return {**new, **parent.state_dict()}
    if (config.extractor, wanted.extractor) != (ModelConfig.extractor,) * 2:
        raise WeightsError(f"expected a parent and a student with the features {ModelConfig.extractor} to retrofit, "
                           f"got {config.extractor} and {wanted.extractor}")
    weight, bias = parent.embedder.projection.weight.detach(), parent.embedder.projection.bias.detach()
    if wanted.resolution != config.resolution:
        weight = resize_patches(weight, config.channels, config.resolution, wanted.resolution)
    colors = config.channels * wanted.resolution**2
    bins, more = config.position_bins, wanted.position_bins
    patches, positions = weight[:, :colors], weight[:, colors : colors + bins**2]
    if config.normalization != wanted.normalization:
        patches, bias = _recolored(patches, bias, config, wanted)
    grid = F.interpolate(positions.view(1, -1, bins, bins), size=(more, more), mode="bicubic", align_corners=False)
    mass = position_mass(wanted) / position_mass(config)
    projection = torch.cat([patches, grid.view(-1, more**2) / mass], 1)
    if config.gradients and wanted.gradients and _texture(config) == _texture(wanted):
        projection = torch.cat([projection, weight[:, colors + bins**2 :]], 1)
    missing = student.embedder.projection.in_features - projection.shape[1]
    scales = {name: tensor for name, tensor in student.state_dict().items() if "scale" in name}
    return {**scales, **parent.state_dict(), "embedder.projection.weight": F.pad(projection, (0, missing)),
            "embedder.projection.bias": bias}


def position_mass(config: ModelConfig) -> float:
    """The sum of a position histogram, a mean over positions: its kernels are not normalised (§2.3).

    ``(1/2 Σ_k ∫ exp(−(c_k − y)² / 2σ²) dy)²`` for y in [−1, 1] and bins around c_k, and 1 for σ = 0.
    """
    bins, sigma = config.position_bins, config.position_sigma
    if sigma == 0:
        return 1.0
    ends = [(1 + sign * ((2 * k + 1) / bins - 1)) / (sigma * math.sqrt(2)) for k in range(bins) for sign in (-1, 1)]
    return (sigma * math.sqrt(math.pi / 8) * sum(map(math.erf, ends))) ** 2


def _texture(config: ModelConfig) -> tuple[int, float, float]:
    """What the weights of gradient features were learnt for."""
    return config.gradient_bins, config.gradient_sigma, config.gradient_contrast


def _recolored(patches: Tensor, bias: Tensor, config: ModelConfig, wanted: ModelConfig) -> tuple[Tensor, Tensor]:
    """γ for other colours: the linear map between two normalisations that fits 256 grey levels best."""
    levels = (torch.arange(256, dtype=torch.float64) / 255).expand(1, config.channels, 1, 256)
    old, new = (NORMALIZATIONS[each.normalization](levels)[0, :, 0] for each in (config, wanted))
    spread = new - new.mean(1, keepdim=True)
    slope = (spread * old).sum(1) / spread.square().sum(1)
    shift = old.mean(1) - slope * new.mean(1)
    filters = patches.double().view(len(patches), config.channels, -1)
    return ((filters * slope[:, None]).flatten(1).to(patches),
            (bias + (filters.sum(2) * shift).sum(1)).to(bias))


class Distillation(Task):
    """The task of a retrofit.

    Args:
        student: the model that trains.
        parent: its teacher, on the device of the images.
        compiled: fuse the comparison of tokens with torch.compile.
        elastic: how the student tokenizes beside its own way.
    """

    def __init__(self, student: SpitModel, parent: SpitModel, config: DistillConfig, measure: Validate | None = None,
                 compiled: bool = False, elastic: ElasticConfig | None = None) -> None:
        super().__init__(student, measure, elastic)
        self.patch = patch_side(parent)
        self.parent = teacher_of(parent).eval().requires_grad_(False)
        self.config, self.compiled = config, compiled
        self.initial = inherited(parent, student) if config.keep > 0 else {}
        if self.initial:
            check_tensors("a student with distill.keep", self.initial, student.state_dict())

    def groups(self) -> list[Group]:
        rates = {"embedder": self.config.embedder_rate, "head": self.config.head_rate}
        parts: dict[str, dict[str, nn.Parameter]] = {"embedder": {}, "head": {}, "": {}}
        for name, parameter in self.module.named_parameters():
            part = name.partition(".")[0]
            parts[part if part in rates else ""][name] = parameter
        return [group for part, named in parts.items() for group in decay_groups(named, rates.get(part, 1.0))]

    def loss(self, network: Callable[..., Any], batch: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        images = batch.draw.mix(batch.images)
        config = self.config
        layers = range(self.module.config.depth) if config.tokens > 0 else ()
        with torch.no_grad():
            truth: Output = self.parent(images, record=Recorder({"features": layers}, fused=True))
            views = [truth, *(self.parent(_resized(images, side), record=Recorder({}, fused=True))
                              for side in config.sizes)]
        logits, class_token = (torch.stack([getattr(view, name).float() for view in views]).mean(0)
                               for name in ("logits", "class_token"))
        with self.elastic.drawn(len(images)):
            answer: Output = network(images, record=Recorder({"features": layers}, fused=True))
        parts = {}
        if self.module.config.num_classes:
            parts["logits"] = _divergence(answer.logits, logits)
        if config.class_token > 0:
            parts["class_token"] = F.smooth_l1_loss(answer.class_token.float(), class_token)
        if config.tokens > 0:
            pooling = Pooling(answer, images.shape[-1] // self.patch, self.module.config.token_budget, self.compiled,
                              self.module.prefix)
            parts["tokens"] = torch.stack([pooling.missed(answer.features[layer], truth.features[layer])
                                           for layer in layers]).mean()
        total = torch.stack([getattr(config, name) * part for name, part in parts.items()]).sum()
        told = {name: part.detach() for name, part in parts.items()}
        if self.module.config.num_classes:
            told["agreement"] = (answer.logits.argmax(1) == logits.argmax(1)).float().mean()
        return total, told

    def product(self) -> SpitModel:
        if not self.initial:
            return self.module
        product = copy.deepcopy(self.module)
        product.load_state_dict({name: torch.lerp(learnt, self.initial[name].to(learnt), self.config.keep)
                                 for name, learnt in self.module.state_dict().items()})
        return product


def _resized(images: Tensor, side: int) -> Tensor:
    """Images of 8 bits at another size, by bicubic interpolation."""
    finer = F.interpolate(images.float(), size=side, mode="bicubic", antialias=True)
    return finer.round_().clamp_(0, 255).byte()


def _divergence(logits: Tensor, wanted: Tensor) -> Tensor:
    """KL(wanted ‖ logits), a mean over images."""
    student, teacher = (F.log_softmax(x.float(), dim=1) for x in (logits, wanted))
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True)


class Pooling:
    """From the parent's tokens to the student's targets: its prefix, and a mean over the pixels of each region.

    The share of a region in each patch is its empirical position histogram, with as many bins as there are patches.

    Args:
        side: patches of the parent along a side of the square images.
        most: largest number of tokens of an image if some were dropped; None asks the device.
        prefix: tokens in front of an image's own: the class token.
    """

    def __init__(self, answer: Output, side: int, most: int | None, compiled: bool = False, prefix: int = 1) -> None:
        partition = answer.partition
        shares = Tokens(kernels.position_histogram(partition.blocks[0], partition.offsets, side, 0.0).flatten(1),
                        partition.offsets)
        if answer.kept is not None:
            shares = shares.select(answer.kept)
        longest = int(shares.counts.max()) if most is None or answer.kept is None else most
        own = torch.eye(prefix, side**2 + prefix, dtype=shares.values.dtype, device=shares.values.device)
        rows = put_class_token(Tokens(F.pad(shares.values, (prefix, 0)), shares.offsets), own)
        self.image = rows.image_of
        self.place = torch.arange(len(rows.values), device=own.device) - rows.offsets[self.image]
        self.count = side**2 + prefix
        self.pad = -self.count % ALIGNED
        self.shares = own.new_zeros(len(shares), longest + prefix, self.count + self.pad)
        self.shares[self.image, self.place, : self.count] = rows.values
        self.weights = torch.where(self.place < prefix, 1 / max(prefix, 1), 1 / shares.counts[self.image]) / len(shares)
        self.distance = fused(_distance) if compiled else _distance

    def missed(self, answer: Tokens, truth: Tokens) -> Tensor:
        """The distance of the student's tokens from their targets, a mean over images.

        A token's distance is its squared error over the variance of the target's D numbers, which the next norm
        divides by. An image's is the mean over its prefix plus the mean over its regions.
        """
        return self.distance(answer.values, self.products(truth.values), self.image, self.place, self.weights)

    def products(self, tokens: Tensor) -> Tensor:
        """The targets, padded: row ``(image, place)`` is that of the student's. Shape: ``(B, longest + 1, D)``."""
        padded = F.pad(tokens.view(len(self.shares), self.count, -1), (0, 0, 0, self.pad))
        return torch.bmm(self.shares.to(tokens.dtype), padded)


def _distance(answer: Tensor, products: Tensor, image: Tensor, place: Tensor, weights: Tensor) -> Tensor:
    """:meth:`Pooling.missed` of rows ``(ΣN, D)`` with targets ``products[image, place]``."""
    wanted = products[image, place].float()
    return ((answer.float() - wanted).square().mean(1) / wanted.var(1)) @ weights
