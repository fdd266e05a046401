"""The prototype method: tokens on the first principal component of tokens and prototypes (App. D)."""

from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.attribution.prototypes import Prototypes, find_prototypes, load_prototypes
from spit.forward_pass import ForwardPass
from spit.model import SpitModel
from spit.predictor import Predictor


@dataclass(frozen=True)
class PrototypeProjection:
    """``Φ(ξ) v`` with v the first right singular vector of ``M − μ(M)``, ``M = [Φ(ξ); ν_c]``.

    Φ(ξ) are the image's tokens after the final norm, and ν_c the prototypes of the class, which J(ν) keeps near unit
    length. The paper does not say which way v points; here the prototypes lie on its positive side.

    Args:
        prototypes: of the model, a file with them, or the name of a model of spit (default: those that come with spit
            for the model's weights).

    Shape:
        one ``(H, W)`` map an image: for every pixel its token's coordinate.

    Example:
        >>> import spit, torch
        >>> from spit.attribution import PrototypeProjection
        >>> model = spit.create_model("spit_tiny_16", pretrained=True)
        >>> method = PrototypeProjection("spit_tiny_16")
        >>> spit.explain(model, torch.rand(1, 3, 64, 64), method, target="tabby").shape
        torch.Size([1, 64, 64])
    """

    name: ClassVar[str] = "prototype"
    of_class: ClassVar[bool] = True
    prototypes: Prototypes | str | PathLike[str] | None = None

    def config(self) -> dict[str, Any]:
        """Everything that a map depends on beside model and image."""
        return {"prototypes": None if self.prototypes is None else _read(self.prototypes).digest}

    def load(self, model: SpitModel | Predictor) -> Prototypes:
        """The prototypes for a model.

        Raises:
            WeightsError: none, or those of a model of another shape.
        """
        predictor = Predictor.of(model)
        found = find_prototypes(predictor) if self.prototypes is None else _read(self.prototypes)
        found.check(predictor.model)
        return found

    @torch.no_grad()
    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        own = self.load(seen.model).values.to(classes.device)[classes]  # (B, K, D)
        return seen.paint(torch.cat([project(tokens.float(), anchors)
                                     for tokens, anchors in zip(seen.tokens, own, strict=True)]))


def _read(given: Prototypes | str | PathLike[str]) -> Prototypes:
    return given if isinstance(given, Prototypes) else load_prototypes(given)


def project(tokens: Tensor, prototypes: Tensor) -> Tensor:
    """Tokens on the first principal component of tokens and prototypes, prototypes on its positive side.

    Shape:
        tokens ``(N, D)``, prototypes ``(K, D)``; the answer ``(N,)``.
    """
    rows = torch.cat([tokens, prototypes.to(tokens.dtype)]).double()
    centred = rows - rows.mean(0)
    gram = centred.T @ centred if centred.shape[0] > centred.shape[1] else centred @ centred.T
    vector = torch.linalg.eigh(gram).eigenvectors[:, -1]
    axis = vector if centred.shape[0] > centred.shape[1] else centred.T @ vector
    axis = axis / axis.norm().clamp(min=torch.finfo(axis.dtype).tiny)
    towards = (centred[len(tokens) :] @ axis).sum()
    values: Tensor = centred[: len(tokens)] @ axis * torch.where(towards < 0, -1.0, 1.0)
    return values.to(tokens.dtype)
