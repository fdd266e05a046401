"""A token head for saliency: another h on the same tokens, a linear layer that says foreground or not."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from spit.errors import WeightsError
from spit.fitted import Fitted
from spit.forward_pass import ForwardPass, each_alone
from spit.model import SpitModel
from spit.predictor import Prediction, Predictor
from spit.segmentation.graph import Floats, RegionGraph
from spit.segmentation.smoothing import smooth
from spit.tokens import Tokens

SURE = 4.0  # log-odds beyond are as sure as this
MARGIN = 0.8  # log-odds that foreground must exceed: a cut divides at the mean, which takes too much for foreground
HOW = "train one with spit train-head --data PHOTOS --model MODEL, or with spit.training.head.fit_head"


@dataclass(frozen=True)
class TokenHead(Fitted, key="saliency_head", what="a head for saliency", how=HOW):
    """A linear layer on the tokens of several layers, ``Σ_l ⟨w_l, LN(t_l)⟩ + b``: log-odds of the foreground.

    t_l is a token as it leaves layer l, and LN scales it to mean 0 and variance 1 over its columns.

    Attributes:
        weights: w, a row for each layer.
        bias: b.
        layers: the layers, from 0.
        about: ``weights``, the digest of the model that it belongs to, and how it was trained.

    Shape:
        weights ``(L, D)`` and bias ``()`` float32.

    Example:
        >>> from spit.segmentation import load_head
        >>> head = load_head("spit_tiny_16")
        >>> head.weights.shape == (len(head.layers), 192)
        True
    """

    weights: Tensor
    bias: Tensor
    layers: tuple[int, ...]
    about: Mapping[str, Any]

    def parts(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {"weights": self.weights.float(), "bias": self.bias.float()}, {"layers": self.layers}

    @classmethod
    def of_parts(cls, tensors: Mapping[str, Tensor], header: dict[str, Any]) -> Self:
        weights, bias, layers = tensors["weights"].float(), tensors["bias"].float(), tuple(header.pop("layers"))
        if (weights.ndim != 2 or bias.ndim or len(weights) != len(layers) or not layers
                or not all(isinstance(layer, int) and layer >= 0 for layer in layers)):
            raise ValueError(f"layers {layers}, weights {tuple(weights.shape)}, bias {tuple(bias.shape)}")
        if not weights.isfinite().all() or not bias.isfinite():
            raise ValueError("NaN or infinity")
        return cls(weights, bias, layers, header)

    def misfit(self, model: SpitModel) -> tuple[str, str] | None:
        config, (_, width) = model.config, self.weights.shape
        fits = width == config.width and max(self.layers) < config.depth
        return None if fits else (f"tokens of width {config.width} and {config.depth} layers",
                                  f"width {width} and layers {', '.join(map(str, self.layers))}")

    @property
    def digest(self) -> str:
        """A hash of layers and weights."""
        values = torch.cat([self.weights.float().flatten(), self.bias.float().view(1)]).cpu().numpy()
        return hashlib.sha256(repr(self.layers).encode() + values.tobytes()).hexdigest()[:16]

    def scores(self, seen: ForwardPass) -> Tensor:
        """Log-odds of a pass's tokens, class tokens left out, ``(ΣN,)`` float32; positive is foreground."""
        return self.of_tokens(stacked_tokens(seen, self.layers))

    @torch.no_grad()
    def of_tokens(self, stacked: Sequence[Tokens]) -> Tensor:
        """:meth:`scores` of the tokens of each layer."""
        rows = zip(stacked, self.weights.to(stacked[0].values.device), strict=True)
        return torch.stack([tokens.values @ own for tokens, own in rows]).sum(0) + self.bias.item()


def stacked_tokens(seen: ForwardPass, layers: Iterable[int]) -> list[Tokens]:
    """The tokens that leave each of some layers, without the class token, as a head sees them, float32."""
    found = [seen.model.tokens_of(tokens) for tokens in seen.layer_features(layers)]
    return [tokens.replace(F.layer_norm(tokens.values.float(), tokens.values.shape[1:])) for tokens in found]


def load_head(source: TokenHead | str | PathLike[str]) -> TokenHead:
    """Read a head from a file, or the one of a model that comes with spit, by its name."""
    return TokenHead.load(source)


def head_for(predictor: Predictor, method: str | None, file: str | PathLike[str] | None = None) -> TokenHead | None:
    """The head that a method of :class:`~spit.answers.Segment` needs; None for the cut alone.

    Raises:
        WeightsError: the method asks for a head, and neither a file nor spit has one for the model's weights; or the
            file's head was trained with others.
    """
    if method == "cut":
        if file is not None:
            raise ValueError(f"expected no file of a token head with method 'cut', got {file}; leave one of them out")
        return None
    if file is None:
        head = TokenHead.find(predictor)
        if head is None and method is not None:
            raise WeightsError(f"{predictor.name} has no token head, which method {method!r} needs; {HOW}, or use "
                               "method 'cut'")
        return head
    head = load_head(file)
    head.check(predictor.model)
    if head.about.get("weights") != predictor.digest:
        raise WeightsError(f"{file}: expected a head of this model's weights, {predictor.digest}, got one of "
                           f"{head.about.get('weights')}; {HOW}")
    return head


def head_scores(prediction: Prediction, head: TokenHead, others: Tensor | None = None) -> Tensor:
    """Log-odds of all tokens by a head, or their mean with others, less a margin, smoothed over each image's regions.

    A token that the others leave undecided at exactly 0, as all of an image with nothing to cut, stays so before
    smoothing.

    Shape:
        others ``(ΣN,)`` to ``(ΣN,)`` float32.
    """
    stacked = each_alone(lambda one: stacked_tokens(one, head.layers), prediction.passes)
    scores = torch.cat([head.of_tokens(tokens) for tokens in stacked]) - MARGIN
    if others is not None:
        scores = torch.where(others == 0, 0.0, (scores + others - MARGIN) / 2)
    parts = torch.split(scores.double().cpu(), prediction.partition.counts.tolist())
    maps = [labels for block in prediction.partition.blocks for labels in block]

    def smoothed(index: int) -> Floats:
        return smooth(RegionGraph.of(prediction.images[index], maps[index]), parts[index].numpy().clip(-SURE, SURE))

    return torch.from_numpy(np.concatenate(each_alone(smoothed, range(len(maps))))).to(scores)
