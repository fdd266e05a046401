"""The leading eigenvectors of a batch of symmetric matrices, where they are: Lanczos in float64."""

import torch
from torch import Tensor

CHECK = 16  # steps between two looks at the small problem
STEPS = 400  # at most; 16 to 48 do for the tokens of photographs
TOLERANCE = 1e-6  # of the residual, against the gap to the next eigenvalue
EXHAUSTED = 1e-12  # a remainder this short is rounding alone
GOLDEN = 0.6180339887498949


def leading_vectors(matrices: Tensor, known: Tensor) -> Tensor:
    """The unit eigenvector of the largest eigenvalue among those orthogonal to a known one, for each matrix.

    Every new vector is made orthogonal to all earlier ones, twice, and to ``known``. An image is done when
    the residual of its Ritz pair is below 1e-6 of the gap to the next Ritz value, and keeps that vector
    while others go on: what is in the batch beside it changes nothing but the rounding of float64. Rows of
    padding are zero in every vector. The start is one fixed sequence, so nothing is random; the sign is
    whatever comes out, and left to the caller.

    Where ``matrix − known knownᵀ`` has no positive eigenvalue the answer is zero: there is nothing to find.

    Args:
        matrices: symmetric, zero in the rows and columns of padding.
        known: a unit eigenvector of each, zero on padding.

    Shape:
        matrices ``(B, N, N)`` and known ``(B, N)``, float64; the answer ``(B, N)``.
    """
    batch, size = known.shape
    basis = torch.stack([known, _orthogonal(_start(known), known[:, None])], dim=1)
    basis[:, 1] = _unit(basis[:, 1])[0]
    answer, done = torch.zeros_like(known), torch.zeros(batch, dtype=torch.bool, device=known.device)
    diagonal: list[Tensor] = []
    beside: list[Tensor] = []
    for step in range(1, min(STEPS, size) + 1):
        vector = torch.bmm(matrices, basis[:, step, :, None])[:, :, 0]
        diagonal.append((vector * basis[:, step]).sum(1))
        following, length = _unit(_orthogonal(vector, basis))
        beside.append(length)
        if step % CHECK == 0 or step == min(STEPS, size):
            weights, settled = _ritz(torch.stack(diagonal, 1), torch.stack(beside, 1))
            found = torch.bmm(weights[:, None], basis[:, 1:])[:, 0]
            answer = torch.where(done[:, None], answer, found)
            done |= settled
            if done.all():
                break
        basis = torch.cat([basis, following[:, None]], dim=1)
    return answer


def _start(known: Tensor) -> Tensor:
    """``frac(i φ) − 1/2`` for token i: spread evenly, the same for an image in any batch."""
    places = torch.arange(1, known.shape[1] + 1, dtype=known.dtype, device=known.device)
    return torch.where(known == 0, 0.0, torch.frac(places * GOLDEN) - 0.5)


def _orthogonal(vectors: Tensor, basis: Tensor) -> Tensor:
    for _ in range(2):  # once leaves the rounding of what was subtracted
        vectors = vectors - torch.bmm(torch.bmm(basis, vectors[:, :, None]).transpose(1, 2), basis)[:, 0]
    return vectors


def _unit(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors of length 1 and the lengths they had; zero, both, where only rounding is left."""
    length = vectors.norm(dim=1)
    length = torch.where(length > EXHAUSTED, length, 0.0)
    return torch.where(length[:, None] > 0, vectors / length.clamp_min(EXHAUSTED)[:, None], 0.0), length


def _ritz(diagonal: Tensor, beside: Tensor) -> tuple[Tensor, Tensor]:
    """The leading eigenvectors of the tridiagonal problems, and which are settled.

    On the CPU: small matrices are faster there than in a GPU's solver, and the same for both.

    Shape:
        ``(B, k)`` each to ``(B, k)`` and ``(B,)`` bool.
    """
    device, inner = diagonal.device, beside[:, :-1].cpu()
    small = torch.diag_embed(diagonal.cpu()) + torch.diag_embed(inner, 1) + torch.diag_embed(inner, -1)
    values, vectors = torch.linalg.eigh(small)
    leading = vectors[:, :, -1]
    gap = values[:, -1] - values[:, -2] if values.shape[1] > 1 else torch.ones_like(values[:, -1])
    residual = (beside[:, -1].cpu() * leading[:, -1]).abs()
    nothing = (values[:, -1] <= EXHAUSTED)[:, None]
    return torch.where(nothing, 0.0, leading).to(device), (residual <= TOLERANCE * gap).to(device)
