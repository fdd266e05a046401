"""Retrofit: a pretrained patch ViT gets superpixel tokens, and learns to be itself again without labels.

The student has all of its parent's weights. Its γ begins as the parent's patch embedding and its
position embedding resampled to the student's bins; then it learns the parent's answers, on the same
crops, from logits, class token and, block by block and region by region, patch tokens.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from spit import kernels
from spit.backbone.recorder import Recorder
from spit.config import ModelConfig
from spit.embedder import put_class_token
from spit.errors import WeightsError
from spit.model import Output, SpitModel
from spit.tokenizers import PatchTokenizer
from spit.tokens import Tokens
from spit.training.fused import fused
from spit.training.task import Batch, Group, decay_groups
from spit.weights import check_tensors

if TYPE_CHECKING:
    from spit.training.distributed import Team

POSITION_MASS = 0.25
"""Σ of a position histogram of 16 bins at σ = 0.025, on average: its kernels are not normalised (§2.3)."""
ALIGNED = 8
"""Rows of half-precision matrices whose length is a multiple of it go through a GPU's tensor cores as they are."""


@dataclass(frozen=True)
class DistillConfig:
    """What the student learns from.

    Attributes:
        logits: weight of the parent's KL(parent ‖ student).
        class_token: weight of the smooth L1 distance of class tokens.
        tokens: weight of what tokens miss as they leave each block, see :meth:`Pooling.missed`: a region's token is
            to be the mean of the parent's tokens over the region's pixels, the class token the parent's.
        second: weight of the second teacher's KL, where there is one.
        second_temperature: the second teacher's logits are divided by it; below 1 for one that is less sure than it is
            right, such as one that learnt from smoothed labels.
        temperature: of all logits.
        embedder_rate: γ's learning rate, times the others'.
        keep: share of an untrained student's weights, :func:`student_of`, in those that are validated and saved,
            below 1; the rest is what was learnt.
    """

    logits: float = 1.0
    class_token: float = 1.0
    tokens: float = 10.0
    second: float = 1.0
    second_temperature: float = 1.0
    temperature: float = 1.0
    embedder_rate: float = 4.0
    keep: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            positive = name in ("temperature", "second_temperature", "embedder_rate")
            if not value >= 0 or (value == 0 and positive):
                raise ValueError(f"expected {name} {'above 0' if positive else 'of 0 or more'}, got {value}")
        if self.keep >= 1:
            raise ValueError(f"expected keep below 1, got {self.keep}")


def student_of(parent: SpitModel, tokenizer: str, options: Mapping[str, Any], gradients: bool = True,
               token_budget: int | None = 256, drop_path: float = 0.0, fill: str = "image") -> SpitModel:
    """A model with another τ and the parent's weights, its γ made from the parent's.

    Position bins number 16 and have the paper's kernels; colours keep the parent's normalisation, so that
    its patch embedding means what it meant, and patches are not masked, so that it sees what it learnt to see: the
    picture in a box. Gradients begin at 0 where the parent has none.

    Raises:
        WeightsError: the parent is not a ViT with square patches.
    """
    patch_side(parent)
    config = parent.config.replace(
        tokenizer=tokenizer, tokenizer_options=dict(options), position_bins=16, position_sigma=0.025,
        gradients=gradients, gradient_bins=16, gradient_sigma=0.025, token_budget=token_budget, drop_path=drop_path,
        fill=fill)
    student = SpitModel(config)
    tensors = dict(parent.state_dict())
    tensors["embedder.projection.weight"] = _projection(tensors["embedder.projection.weight"], parent.config, student)
    student.load_state_dict(tensors)
    return student


def patch_side(parent: SpitModel) -> int:
    """The side of the parent's patches.

    Raises:
        WeightsError: its tokens are others.
    """
    if not isinstance(parent.tokenizer, PatchTokenizer):
        raise WeightsError(f"expected a parent with square patches, got one with {parent.config.tokenizer} tokens; "
                           "bring a ViT with spit.from_timm")
    return parent.tokenizer.size


def _projection(weight: Tensor, parent: ModelConfig, student: SpitModel) -> Tensor:
    colors = parent.channels * parent.resolution**2
    bins, more = parent.position_bins, student.config.position_bins
    patches, positions = weight[:, :colors], weight[:, colors : colors + bins**2]
    grid = F.interpolate(positions.view(1, -1, bins, bins), size=(more, more), mode="bicubic", align_corners=False)
    mass = POSITION_MASS if parent.position_sigma == 0 else 1.0  # a parent of spit's own has these kernels already
    known = torch.cat([patches, grid.view(-1, more**2) / mass], 1)
    if parent.gradients and student.config.gradients and parent.gradient_bins == student.config.gradient_bins:
        return torch.cat([known, weight[:, colors + bins**2 :]], 1)
    return F.pad(known, (0, student.extractor.width - known.shape[1]))


class Distillation:
    """The task of :func:`spit.training.loop.fit` that makes a student its parent again.

    Args:
        student: what trains.
        parent: whose answers it learns; not trained, on the device of the images.
        config: what is learnt from.
        second: another teacher, from uint8 images to logits.
        validate: figures of the student, as :meth:`spit.training.task.Task.validate`.
        compiled: whether torch.compile fuses what compares tokens.
    """

    def __init__(self, student: SpitModel, parent: SpitModel, config: DistillConfig,
                 second: Callable[[Tensor], Tensor] | None = None,
                 validate: Callable[[SpitModel, "Team"], Mapping[str, float]] | None = None,
                 compiled: bool = False) -> None:
        self.module: nn.Module = student
        self.patch = patch_side(parent)
        self.student, self.parent, self.config, self.second = student, parent.eval(), config, second
        self.parent.requires_grad_(False)
        self._validate = validate
        self.compiled = compiled
        self.beginning = _beginning(parent, student) if config.keep > 0 else {}

    def groups(self) -> Sequence[Group]:
        named = dict(self.student.named_parameters())
        embedder = {name: parameter for name, parameter in named.items() if name.startswith("embedder.")}
        others = {name: parameter for name, parameter in named.items() if name not in embedder}
        return [*decay_groups(embedder, self.config.embedder_rate), *decay_groups(others)]

    def loss(self, network: Callable[..., Any], batch: Batch) -> tuple[Tensor, Mapping[str, Tensor]]:
        images = batch.draw.mix(batch.images)
        config = self.config
        layers = range(self.student.config.depth) if config.tokens > 0 else ()
        with torch.no_grad():
            truth: Output = self.parent(images, record=Recorder({"features": layers}, fused=True))
            others = None if self.second is None else self.second(images)
        answer: Output = network(images, record=Recorder({"features": layers}, fused=True))
        parts = {"logits": _divergence(answer.logits, truth.logits, config.temperature)}
        weights = {"logits": config.logits}
        if config.class_token > 0:
            parts["class_token"] = F.smooth_l1_loss(answer.class_token.float(), truth.class_token.float())
            weights["class_token"] = config.class_token
        if config.tokens > 0:
            pooling = Pooling(answer, images.shape[-1] // self.patch, self.student.config.token_budget, self.compiled)
            parts["tokens"] = torch.stack([pooling.missed(answer.features[layer], truth.features[layer])
                                           for layer in layers]).mean()
            weights["tokens"] = config.tokens
        if others is not None:
            parts["second"] = _divergence(answer.logits, others / config.second_temperature, config.temperature)
            weights["second"] = config.second
        agreement = (answer.logits.argmax(1) == truth.logits.argmax(1)).float().mean()
        total = torch.stack([weights[name] * part for name, part in parts.items()]).sum()
        return total, {**{name: part.detach() for name, part in parts.items()}, "agreement": agreement}

    def validate(self, team: "Team") -> Mapping[str, float]:
        return {} if self._validate is None else self._validate(self.product(), team)

    def product(self) -> SpitModel:
        if not self.beginning:
            return self.student
        product = copy.deepcopy(self.student)
        product.load_state_dict({name: torch.lerp(learnt, self.beginning[name].to(learnt), self.config.keep)
                                 for name, learnt in self.student.state_dict().items()})
        return product


def _beginning(parent: SpitModel, student: SpitModel) -> dict[str, Tensor]:
    """The weights of such a student before it learnt anything.

    Raises:
        WeightsError: it has others than :func:`student_of` gives.
    """
    config = student.config
    weights = student_of(parent, config.tokenizer, config.tokenizer_options, config.gradients, config.token_budget,
                         config.drop_path, config.fill).state_dict()
    check_tensors("a student with distill.keep", weights, student.state_dict())
    return weights


def _divergence(logits: Tensor, wanted: Tensor, temperature: float) -> Tensor:
    """KL(wanted ‖ logits) at a temperature, times its square, which keeps the gradients' size."""
    student, teacher = (F.log_softmax(x.float() / temperature, dim=1) for x in (logits, wanted))
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True) * temperature**2


class Pooling:
    """From the parent's tokens to what the student's should be: the class token stays, a region's is a mean.

    It is the mean over the region's pixels. What share of a region lies in which patch is its empirical position
    histogram with as many bins as the parent has patches a side.

    Args:
        answer: the student's.
        side: patches of the parent along each side of the square images.
        most: tokens an image has at the most where some were dropped; None asks the device.
        compiled: whether torch.compile makes one kernel of a comparison.
    """

    def __init__(self, answer: Output, side: int, most: int | None, compiled: bool = False) -> None:
        partition = answer.partition
        shares = Tokens(kernels.position_histogram(partition.blocks[0], partition.offsets, side, 0.0).flatten(1),
                        partition.offsets)
        if answer.kept is not None:
            shares = shares.select(answer.kept)
        longest = int(shares.counts.max()) if most is None or answer.kept is None else most
        own = torch.eye(1, side**2 + 1, dtype=shares.values.dtype, device=shares.values.device)[0]
        rows = put_class_token(Tokens(F.pad(shares.values, (1, 0)), shares.offsets), own)
        self.image = rows.image_of
        self.place = torch.arange(len(rows.values), device=own.device) - rows.offsets[self.image]
        self.count = side**2 + 1
        self.pad = -self.count % ALIGNED
        self.shares = own.new_zeros(len(shares), longest + 1, self.count + self.pad)
        self.shares[self.image, self.place, : self.count] = rows.values
        self.weights = torch.where(self.place == 0, 1, 1 / shares.counts[self.image]) / len(shares)
        self.distance = fused(_distance) if compiled else _distance

    def __call__(self, tokens: Tensor) -> Tensor:
        """A row for each token of the student, class token first, from a row for each of the parent's.

        Shape:
            ``(B · (P + 1), D)`` to ``(Σ(N + 1), D)``.
        """
        return self._products(tokens)[self.image, self.place]

    def missed(self, answer: Tokens, truth: Tokens) -> Tensor:
        """How far the student's tokens are from what they should be, a mean over the images.

        Of a token that is the squared distance over the variance of its D numbers, which the next norm divides by;
        of an image the mean over its regions, and as much for its class token.
        """
        return self.distance(answer.values, self._products(truth.values), self.image, self.place, self.weights)

    def _products(self, tokens: Tensor) -> Tensor:
        """Shape: ``(B · (P + 1), D)`` to ``(B, longest + 1, D)``."""
        padded = F.pad(tokens.view(len(self.shares), self.count, -1), (0, 0, 0, self.pad))
        return torch.bmm(self.shares.to(tokens.dtype), padded)


def _distance(answer: Tensor, products: Tensor, image: Tensor, place: Tensor, weights: Tensor) -> Tensor:
    """What :meth:`Pooling.missed` sums, of rows ``(ΣN, D)`` and what they should be at ``products[image, place]``."""
    wanted = products[image, place].float()
    return ((answer.float() - wanted).square().mean(1) / wanted.var(1)) @ weights
