"""TokenCut's normalised cut on a packed batch of tokens (App. E; Wang et al. 2022; Shi & Malik 2000)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from spit.segmentation.lanczos import leading_vectors
from spit.tokens import Tokens

WEAK = 1e-5  # ε: weight between dissimilar tokens, so that the graph is connected
BELOW = 0.25  # an image's own τ lies this many standard deviations below its mean cosine
ALIKE = 1 - 1e-6  # a cosine above it is 1 up to rounding
ENTRIES = 1 << 28  # of padded affinities at once, 2 GiB


def normalized_cut(tokens: Tokens, tau: float | None = None) -> tuple[Tensor, Tensor]:
    """The Fiedler vector of each image's graph of tokens, and the τ of each graph.

    The graph is complete, with weights ``W_ij = 1 if cos(z_i, z_j) > τ else ε``. The vector x belongs to the second
    smallest eigenvalue of ``(D − W) x = λ D x`` with ``D = diag(Σ_j W_ij)``. It is ``x = D^(−1/2) u`` with u the second
    leading eigenvector of ``D^(−1/2) W D^(−1/2)``; the first is known, ``D^(1/2) 1``. Computed in float64, since
    clusters joined only by ε differ by 1e-5 in λ.

    The entry of the largest magnitude, the first in a tie, is made positive: TokenCut's foreground. If all tokens are
    alike, or there is only one, x is 0.

    Args:
        tokens: of any length; only cosines count.
        tau: cosine above which two tokens are joined (default: each image's own, see :func:`own_threshold`).

    Shape:
        tokens ``(ΣN, D)`` to ``(ΣN,)`` and ``(B,)`` float64.
    """
    images = tokens.split()
    together = max(1, ENTRIES // max(map(len, images)) ** 2)
    if tokens.values.device.type == "cpu":
        together = 1  # a batch is no faster, and alone an image's rounding is its own
    vectors, thresholds = [], []
    for first in range(0, len(images), together):
        some = images[first : first + together]
        padded = torch.nn.utils.rnn.pad_sequence(list(some), batch_first=True)
        real = torch.arange(padded.shape[1], device=padded.device) < tokens.counts[first : first + len(some), None]
        solved, used = _fiedler(padded.double(), real, tau)
        vectors.append(solved[real])
        thresholds.append(used)
    return torch.cat(vectors), torch.cat(thresholds)


def own_threshold(cosines: Tensor, counts: Tensor) -> Tensor:
    """Each image's own τ, ``mean − ¼ · std`` of the cosines of all pairs of its tokens, at most just below 1.

    The mean cosine depends on the image and the model: it is 0.4 to 0.7 over photographs with one model, and half of
    that with another, so no fixed τ suits both. Each pair counts twice, and each token once with itself.

    Shape:
        cosines ``(B, N, N)`` float64, 0 on padding, and the images' token counts ``(B,)`` to ``(B,)`` float64.
    """
    pairs = counts.square()
    mean = cosines.sum((1, 2)) / pairs
    flat = cosines.flatten(1)
    variance = (flat[:, None] @ flat[:, :, None])[:, 0, 0] / pairs - mean.square()  # no copy of the squares
    return (mean - BELOW * variance.clamp_min(0).sqrt()).clamp_max(ALIKE)


def standardize(values: Tensor, offsets: Tensor) -> Tensor:
    """Each image's values, ``(ΣN,)``, with mean 0 and standard deviation 1; 0 if all are the same."""
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
    weights = (cosines > used[:, None, None]).to(padded.dtype).clamp_min_(WEAK)
    own = real.to(padded.dtype)
    weights.mul_(own[:, :, None]).mul_(own[:, None])  # padding has none
    degree = weights.sum(2)
    scale = torch.where(real, degree.clamp_min(WEAK).rsqrt(), 0.0)
    known = F.normalize(degree.sqrt(), dim=1)
    vector = scale * leading_vectors(weights.mul_(scale[:, :, None]).mul_(scale[:, None]), known)
    seed = vector.abs().argmax(1, keepdim=True)
    return torch.where(vector.gather(1, seed) < 0, -vector, vector), used
