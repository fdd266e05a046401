"""Leading eigenvectors of a batch of symmetric matrices: Lanczos in float64.

This is our own because ``torch.linalg.eigh`` computes all N eigenvectors, and ``torch.lobpcg`` and scipy's ``eigsh``
solve one matrix at a time.
"""

import torch
from torch import Tensor

CHECK = 16  # steps between two tests of convergence
STEPS = 400  # at most; tokens of photographs take 16 to 48
TOLERANCE = 1e-6  # of the residual, relative to the gap to the next eigenvalue
EXHAUSTED = 1e-12  # a shorter remainder is rounding
GOLDEN = 0.6180339887498949


def leading_vectors(matrices: Tensor, known: Tensor) -> Tensor:
    """For each matrix, the unit eigenvector of the largest eigenvalue among those orthogonal to a known one.

    Each new vector is made orthogonal to all earlier ones and to ``known``, twice. A matrix is done when the residual
    of its Ritz pair is below 1e-6 of the gap to the next Ritz value, and keeps that vector while others continue, so
    the rest of the batch changes only the rounding of float64. The start is a fixed sequence; nothing is random. The
    sign is arbitrary. The vector is zero if ``matrix − known knownᵀ`` has no positive eigenvalue.

    Args:
        matrices: symmetric, zero in the rows and columns of padding.
        known: a unit eigenvector of each matrix, zero on padding.

    Shape:
        matrices ``(B, N, N)`` and known ``(B, N)`` to ``(B, N)``, float64, zero on padding.
    """
    size = known.shape[1]
    places = torch.arange(1, size + 1, dtype=known.dtype, device=known.device)
    start = torch.where(known == 0, 0.0, torch.frac(places * GOLDEN) - 0.5)  # spread evenly, the same in any batch
    basis = torch.stack([known, _unit(_orthogonal(start, known[:, None]))[0]], dim=1)
    answer, done = torch.zeros_like(known), torch.zeros_like(known[:, 0], dtype=torch.bool)
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


def _orthogonal(vectors: Tensor, basis: Tensor) -> Tensor:
    for _ in range(2):  # the second time removes the rounding of the first
        vectors = vectors - torch.bmm(torch.bmm(basis, vectors[:, :, None]).transpose(1, 2), basis)[:, 0]
    return vectors


def _unit(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors of length 1, and the lengths they had; both zero if only rounding is left."""
    length = vectors.norm(dim=1)
    length = torch.where(length > EXHAUSTED, length, 0.0)
    return torch.where(length[:, None] > 0, vectors / length.clamp_min(EXHAUSTED)[:, None], 0.0), length


def _ritz(diagonal: Tensor, beside: Tensor) -> tuple[Tensor, Tensor]:
    """The leading eigenvectors of the tridiagonal matrices, ``(B, k)``, and which have converged, ``(B,)`` bool."""
    device, inner = diagonal.device, beside[:, :-1].cpu()  # a CPU solves small matrices faster than a GPU
    small = torch.diag_embed(diagonal.cpu()) + torch.diag_embed(inner, 1) + torch.diag_embed(inner, -1)
    values, vectors = torch.linalg.eigh(small)
    leading = vectors[:, :, -1]
    gap = values[:, -1] - values[:, -2] if values.shape[1] > 1 else torch.ones_like(values[:, -1])
    residual = (beside[:, -1].cpu() * leading[:, -1]).abs()
    nothing = (values[:, -1] <= EXHAUSTED)[:, None]
    return torch.where(nothing, 0.0, leading).to(device), (residual <= TOLERANCE * gap).to(device)
