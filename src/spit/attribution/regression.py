"""A value for each token from the answers to subsets: linear regression in which neighbours are alike."""

from collections.abc import Sequence

import torch
from torch import Tensor

NOISES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # variance of an answer's noise, over the mean variance that values explain
OWN = 0.05  # variance of what a token does not share with its neighbours, over that of what it shares


def regress(answers: Sequence[tuple[Tensor, Tensor]], centers: Tensor, width: float) -> Tensor:
    """The posterior mean of w in ``y = b + X w + ε``, X the subsets, with a Gaussian process over the tokens as prior.

    Two tokens at a distance of d have the covariance ``exp(−d² / 4 width²)``, that of white noise smoothed with a
    Gaussian of deviation ``width``, and 0.05 on top with themselves. The variance of ε is the one of ``NOISES`` with
    the least squared error over answers that are left out one at a time, which the fit to all of them gives in closed
    form: ``(A⁻¹ y)ᵢ / (A⁻¹)ᵢᵢ``, ``A = X K Xᵀ + s I``.

    Args:
        answers: groups of subsets and their answers, for example one for each size of subsets. Each has its own b,
            and is scaled to a standard deviation of 1.
        centers: of the tokens, in pixels.
        width: in pixels; 0 makes tokens independent.

    Shape:
        subsets ``(S, N)`` bool with answers ``(S,)``, centers ``(N, 2)`` float64, to ``(N,)`` float64; zeros if all
        answers of each group are equal.
    """
    varied = [(present.double(), answer.double()) for present, answer in answers
              if len(answer) > 1 and float(answer.std()) > 0]
    if not varied:
        return torch.zeros(len(centers), dtype=torch.float64)
    subsets = torch.cat([present - present.mean(0) for present, _ in varied])
    target = torch.cat([(answer - answer.mean()) / answer.std() for _, answer in varied])
    distance = torch.cdist(centers, centers)
    alike = torch.exp(-distance.square() / (4 * width**2)) if width > 0 else torch.zeros_like(distance)
    covariance = alike + OWN * torch.eye(len(centers), dtype=torch.float64)
    variance, basis = torch.linalg.eigh(subsets @ covariance @ subsets.T)
    variance = variance.clamp(min=0)
    turned = basis.T @ target
    fits = []
    for noise in NOISES:
        total = variance + noise * variance.mean()
        weights = basis @ (turned / total)
        left_out = weights / (basis.square() / total).sum(1)
        fits.append((float(left_out.square().mean()), weights))
    values: Tensor = covariance @ (subsets.T @ min(fits, key=lambda fit: fit[0])[1])
    return values
