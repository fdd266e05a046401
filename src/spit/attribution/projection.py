"""The prototype method: tokens on the first principal component of tokens and prototypes (App. D)."""

from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.attribution.prototypes import Prototypes, find_prototypes, load_prototypes
from spit.attribution.targets import choose_classes
from spit.model import SpitModel


@dataclass(frozen=True)
class PrototypeProjection:
    """``Φ(ξ) v`` with v the first right singular vector of ``M − μ(M)``, ``M = [Φ(ξ); ν_c]``.

    Φ(ξ) are the image's tokens as they leave f, after the final norm, and ν_c the prototypes of the class,
    which J(ν) holds near unit length. The paper does not say which way v points: here the prototypes lie on
    its positive side.

    Args:
        prototypes: the model's, or the file or the name of the model they come from; those that come with spit
            for these weights unless told.

    Shape:
        images ``(B, C, H, W)`` to ``(B, H, W)``: for every pixel its token's coordinate.
    """

    name: ClassVar[str] = "prototype"
    of_class: ClassVar[bool] = True
    prototypes: Prototypes | str | PathLike[str] | None = None

    def config(self) -> dict[str, Any]:
        """All that the map depends on beside model and image."""
        if self.prototypes is None:
            return {"prototypes": None}
        held = self.prototypes if isinstance(self.prototypes, Prototypes) else load_prototypes(self.prototypes)
        return {"prototypes": held.digest}

    @torch.no_grad()
    def __call__(self, model: SpitModel, images: Tensor, target: Tensor | None = None) -> Tensor:
        prototypes = self._held(model)
        output = model(images, record=())
        classes = choose_classes(output.logits, target)
        own = prototypes.values.to(images.device)[classes]  # (B, K, D)
        values = [project(tokens.float(), anchors) for tokens, anchors in zip(output.tokens, own, strict=True)]
        painted: Any = output.partition.paint(torch.cat(values))
        return painted  # type: ignore[no-any-return]

    def _held(self, model: SpitModel) -> Prototypes:
        if self.prototypes is None:
            return find_prototypes(model)
        held = self.prototypes if isinstance(self.prototypes, Prototypes) else load_prototypes(self.prototypes)
        held.check(model)
        return held


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
