"""TokenCut's normalised cut on a packed batch of tokens (App. E; Wang et al. 2022; Shi & Malik 2000)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.segmentation.lanczos import leading_vectors
from spit.tokens import Tokens

WEAK = 1e-5  # ε: what joins tokens that are not alike, so that the graph is connected
BELOW = 0.25  # deviations of an image's cosines, from their mean down to its own τ
ALIKE = 1 - 1e-6  # a cosine above it is 1 but for rounding
ENTRIES = 1 << 28  # of padded affinities that are made at once, 2 GiB


def normalized_cut(tokens: Tokens, tau: float | None = None) -> Tensor:
    """The Fiedler vector of each image's graph of tokens, ``(ΣN, D)`` to ``(ΣN,)`` float64: see :func:`cut_graphs`."""
    return cut_graphs(tokens, tau)[0]


def cut_graphs(tokens: Tokens, tau: float | None = None) -> tuple[Tensor, Tensor]:
    """The Fiedler vector of each image's graph of tokens, and the τ that the graph was made with.

    The graph is complete, with weights ``W_ij = 1 if cos(z_i, z_j) > τ else ε``, and the vector x is the one
    of the second smallest eigenvalue of ``(D − W) x = λ D x`` with ``D = diag(Σ_j W_ij)``. It is solved as
    ``x = D^(−1/2) u`` with u the second leading eigenvector of ``D^(−1/2) W D^(−1/2)``; the first one is
    ``D^(1/2) 1``, known beforehand. In float64, since clusters that only ε joins differ by 1e-5 in λ.

    The entry of the largest magnitude, the first of equals, is made positive, which is TokenCut's
    foreground. Where all tokens are alike, or there is one, nothing is to be cut and x is 0.

    Args:
        tokens: of any scale; cosines alone count.
        tau: above which cosine two tokens are joined; None is each image's own, see :func:`own_threshold`.

    Shape:
        tokens ``(ΣN, D)`` to ``(ΣN,)`` and ``(B,)`` float64.
    """
    counts = tokens.counts.tolist()
    longest = max(counts)
    together = max(1, ENTRIES // longest**2)
    if tokens.values.device.type == "cpu":
        together = 1  # nothing is gained by more, and an image's rounding cannot depend on its neighbours
    images = tokens.split()
    vectors, thresholds = [], []
    for first in range(0, len(images), together):
        some = images[first : first + together]
        padded = torch.nn.utils.rnn.pad_sequence(list(some), batch_first=True)
        real = torch.arange(padded.shape[1], device=padded.device) < tokens.counts[first : first + len(some), None]
        solved, used = _fiedler(padded.double(), real, tau)
        thresholds.append(used)
        vectors += [vector[:count] for vector, count in zip(solved, counts[first : first + len(some)], strict=True)]
    return torch.cat(vectors), torch.cat(thresholds)


def own_threshold(cosines: Tensor, counts: Tensor) -> Tensor:
    """Each image's own τ, ``mean − ¼ · std`` of the cosines of all pairs of its tokens.

    How alike an image's tokens are to begin with depends on the image and on the model: the mean cosine of one
    model's tokens goes from 0.4 to 0.7 over photographs, and is half of that in another. A τ that is fixed cuts
    the one into crumbs and finds nothing in the other. Each pair counts twice, and each token once with itself.

    Where all tokens are alike τ is just below 1, so that rounding cuts nothing.

    Args:
        cosines: 0 on padding.
        counts: real tokens of each image.

    Shape:
        cosines ``(B, N, N)`` float64 and counts ``(B,)`` to ``(B,)`` float64.
    """
    pairs = counts.square()
    mean = cosines.sum((1, 2)) / pairs
    variance = cosines.square().sum((1, 2)) / pairs - mean.square()
    return (mean - BELOW * variance.clamp_min(0).sqrt()).clamp_max(ALIKE)


def standardize(values: Tensor, offsets: Tensor) -> Tensor:
    """Each image's values with mean 0 and standard deviation 1; 0 where all are the same.

    Shape:
        values ``(ΣN,)`` and offsets ``(B + 1,)`` to ``(ΣN,)``.
    """
    parts = []
    for part in torch.split(values, offsets.diff().tolist()):
        centred = part - part.mean()
        deviation = centred.square().mean().sqrt()
        parts.append(torch.where(deviation > 1e-9 * part.abs().max(), centred / deviation, 0.0))
    return torch.cat(parts)


def _fiedler(padded: Tensor, real: Tensor, tau: float | None) -> tuple[Tensor, Tensor]:
    """Shape: padded ``(B, N, D)`` float64 and real ``(B, N)`` bool to ``(B, N)``, 0 on padding, and ``(B,)``."""
    unit = F.normalize(padded, dim=2)
    cosines = torch.bmm(unit, unit.transpose(1, 2))
    used = own_threshold(cosines, real.sum(1)) if tau is None else padded.new_full((len(padded),), tau)
    alike = cosines > used[:, None, None]
    pairs = real[:, :, None] & real[:, None]
    weights = torch.where(alike, padded.new_ones(()), padded.new_full((), WEAK)) * pairs
    degree = weights.sum(2)
    scale = torch.where(real, degree.clamp_min(WEAK).rsqrt(), 0.0)
    known = F.normalize(degree.sqrt(), dim=1)
    vector = scale * leading_vectors(scale[:, :, None] * weights * scale[:, None], known)
    seed = vector.abs().argmax(1, keepdim=True)
    return torch.where(vector.gather(1, seed) < 0, -vector, vector), used
