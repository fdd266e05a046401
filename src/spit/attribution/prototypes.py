"""Prototypes of classes on disk, and the method that projects tokens on them (App. D)."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from spit.attribution.options import Form, MethodOptions
from spit.backbone import Transformer
from spit.embedder import take_class_token
from spit.errors import WeightsError
from spit.fitted import Fitted
from spit.forward_pass import ForwardPass
from spit.model import SpitModel
from spit.options import Options, documented, option, same
from spit.predictor import Predictor
from spit.tokens import Tokens

HOW = "make them with spit prototypes --data PHOTOS --model MODEL, or with spit.attribution.fit_prototypes"


@dataclass(frozen=True)
class Prototypes(Fitted, key="prototypes", what="prototypes", how=HOW):
    """A few directions of the class token for each class, in half precision on disk.

    Attributes:
        values: ν, the prototypes.
        counts: number of images behind each class's prototypes; if 0, they are its row of the head.
        about: ``weights``, the digest of the model they belong to, and how they were made.

    Shape:
        values ``(classes, K, D)``, counts ``(classes,)`` int64.

    Example:
        >>> from spit.attribution import load_prototypes
        >>> load_prototypes("spit_tiny_16").values.shape
        torch.Size([1000, 5, 192])
    """

    values: Tensor
    counts: Tensor
    about: Mapping[str, Any]

    def parts(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {"prototypes": self.values.half(), "counts": self.counts.int()}, {}

    @classmethod
    def of_parts(cls, tensors: Mapping[str, Tensor], header: dict[str, Any]) -> Self:
        values, counts = tensors["prototypes"].float(), tensors["counts"].long()
        if values.ndim != 3 or counts.shape != values.shape[:1] or not values.isfinite().all():
            raise ValueError(f"shapes {tuple(values.shape)} and {tuple(counts.shape)}, or NaN or infinity")
        return cls(values, counts, header)

    def misfit(self, model: SpitModel) -> tuple[str, str] | None:
        wanted, got = (model.config.num_classes, model.config.width), (len(self.values), self.values.shape[-1])
        return None if wanted == got else (f"{wanted[0]} classes and width {wanted[1]}", f"{got[0]} and {got[1]}")

    @property
    def digest(self) -> str:
        """A hash of the values."""
        return hashlib.sha256(self.values.half().cpu().contiguous().numpy().tobytes()).hexdigest()[:16]


def load_prototypes(source: Prototypes | str | PathLike[str]) -> Prototypes:
    """Read prototypes from a file, or those of a model that comes with spit, by its name."""
    return Prototypes.load(source)


def find_prototypes(model: SpitModel | Predictor, files: Iterable[str | PathLike[str]] = ()) -> Prototypes:
    """The prototypes of a model's weights, from files or from those that come with spit; WeightsError if none are."""
    found = Prototypes.find(Predictor.of(model), files)
    if found is None:
        raise WeightsError(f"no prototypes of this model's weights, neither given nor with spit; {HOW}; then give them "
                           "with --prototypes FILE, in Python with spit.attribution.PrototypeProjection(FILE)")
    return found


@documented
@dataclass(frozen=True)
class PrototypeProjection(Options):
    """Tokens on a direction that the class's prototypes ν_c give.

    ``form="class"``: ``⟨γ ⊙ W_O V(ξ), μ(ν_c) − μ(ν)⟩``, with V(ξ) the values of the last layer's attention, W_O its
    projection and γ the final norm's weight. The class token receives a token in this way, and prototypes are class
    tokens, so both are in one space. The mean of all prototypes is subtracted, so the map shows the evidence for this
    class rather than others.

    ``form="paper"`` (App. D): ``Φ(ξ) v`` with Φ(ξ) the tokens after the final norm and v the first right singular
    vector of ``M − μ(M)``, ``M = [Φ(ξ); ν_c]``. The paper does not say which way v points; here the prototypes lie on
    its positive side. Five prototypes of unit length hardly move the principal component of hundreds of tokens that
    are 25 times as long, so maps of two classes differ only in sign; docs/attribution.md has the figures.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import PrototypeProjection
        >>> model = spit.create_model("spit_tiny_16", pretrained=True)
        >>> method = PrototypeProjection("spit_tiny_16", form="paper")
        >>> spit.explain(model, torch.rand(1, 3, 64, 64), method, target="tabby").shape
        torch.Size([1, 64, 64])
    """

    name: ClassVar[str] = "prototype"
    of_class: ClassVar[bool] = True

    prototypes: Prototypes | str | PathLike[str] | None = option(
        None, "Prototypes, a file with them, or the name of a model of spit (default: those that come with spit for "
              "the model's weights)")
    form: Form = same(MethodOptions, "prototype_form", "class")

    def config(self) -> dict[str, Any]:
        """See :class:`~spit.attribution.Method`."""
        digest = None if self.prototypes is None else load_prototypes(self.prototypes).digest
        return {"prototypes": digest, "form": self.form}

    def load(self, model: SpitModel | Predictor) -> Prototypes:
        """The prototypes for a model; WeightsError if there are none, or those of a model of another shape."""
        if self.prototypes is None:
            return find_prototypes(model)
        found = load_prototypes(self.prototypes)
        found.check(Predictor.of(model).model)
        return found

    @torch.no_grad()
    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        values = self.load(seen.model).values.to(classes.device)  # (classes, K, D)
        if self.form == "class":
            means = values.mean(1)
            directions = means[classes] - means.mean(0)  # (B, D)
            found = [tokens @ direction for tokens, direction in zip(received(seen), directions, strict=True)]
        else:
            found = [project(tokens.float(), own) for tokens, own in zip(seen.tokens, values[classes], strict=True)]
        return seen.paint(torch.cat(found))


def received(seen: ForwardPass) -> Tokens:
    """What each token adds to the class token in the last layer, per unit of attention, ``(ΣN, D)`` float32.

    Values through the attention's projection, LayerScale and the linear part of the final norm. The last MLP and the
    norm's division by the class token's deviation are left out.
    """
    backbone = seen.model.backbone
    if not isinstance(backbone, Transformer):
        raise ValueError(f"form='class' needs spit's own transformer, got backbone {seen.model.config.backbone!r}; use "
                         "form='paper'")
    trace, block = seen.trace(), backbone.get_submodule(f"blocks.{seen.model.config.depth - 1}")
    _, values = take_class_token(Tokens(trace.heads[-1].value.flatten(1).float(), trace.spans.offsets.long()))
    rows = block.get_submodule("scale1")(values.values @ block.get_parameter("attention.projection.weight").T.float())
    return values.replace((rows - rows.mean(1, keepdim=True)) * backbone.norm.weight.float())


def project(tokens: Tensor, prototypes: Tensor) -> Tensor:
    """Tokens on the first principal component of tokens and prototypes, ``(N,)``, prototypes on its positive side."""
    rows = torch.cat([tokens, prototypes.to(tokens.dtype)]).double()
    centred = rows - rows.mean(0)
    gram = centred.T @ centred if centred.shape[0] > centred.shape[1] else centred @ centred.T
    vector = torch.linalg.eigh(gram).eigenvectors[:, -1]
    axis = vector if centred.shape[0] > centred.shape[1] else centred.T @ vector
    axis = axis / axis.norm().clamp(min=torch.finfo(axis.dtype).tiny)
    towards = (centred[len(tokens) :] @ axis).sum()
    values: Tensor = centred[: len(tokens)] @ axis * torch.where(towards < 0, -1.0, 1.0)
    return values.to(tokens.dtype)
