"""The prototype method: tokens on the first principal component of tokens and prototypes (App. D)."""

from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar

import torch
from torch import Tensor

from spit.attribution.prototypes import Prototypes, find_prototypes, load_prototypes
from spit.forward_pass import ForwardPass


@dataclass(frozen=True)
class PrototypeProjection:
    """``Φ(ξ) v`` with v the first right singular vector of ``M − μ(M)``, ``M = [Φ(ξ); ν_c]``.

    Φ(ξ) are the image's tokens after the final norm, and ν_c the prototypes of the class, which J(ν) holds near unit
    length. The paper does not say which way v points: here the prototypes lie on its positive side.

    Args:
        prototypes: the model's, or a file or the name of a model that they come from (default: those that come with
            spit for these weights).

    Shape:
        one ``(H, W)`` map an image: for every pixel its token's coordinate.
    """

    name: ClassVar[str] = "prototype"
    of_class: ClassVar[bool] = True
    prototypes: Prototypes | str | PathLike[str] | None = None

    def config(self) -> dict[str, Any]:
        """All that the map depends on beside model and image."""
        return {"prototypes": None if self.prototypes is None else self._loaded().digest}

    @torch.no_grad()
    def __call__(self, seen: ForwardPass, classes: Tensor) -> list[Tensor]:
        prototypes = find_prototypes(seen.model) if self.prototypes is None else self._loaded()
        prototypes.check(seen.model)
        own = prototypes.values.to(classes.device)[classes]  # (B, K, D)
        return seen.paint(torch.cat([project(tokens.float(), anchors)
                                     for tokens, anchors in zip(seen.tokens, own, strict=True)]))

    def _loaded(self) -> Prototypes:
        given = self.prototypes
        return given if isinstance(given, Prototypes) else load_prototypes(given or "")


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
