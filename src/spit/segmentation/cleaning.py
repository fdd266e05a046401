"""Masks without crumbs and holes: an energy on the graph of regions, solved exactly, and finer along the boundary.

With z a score for each region, positive on the foreground, the mask y minimises

    E(y) = − Σ_v |v| · (z_v + c_v) · y_v + 0.12 √P Σ_(u,v) l_uv · exp(−d_uv² / 2s²) · [y_u ≠ y_v]

for regions of ``|v|`` pixels in an image of P, with boundaries of ``l_uv`` pixels between neighbours whose mean colours
lie ``d_uv`` apart in CIELAB; s is half the root mean square of the image's own d. So a boundary is cheap where the
colour changes, and a crumb or a hole pays for its outline. Both terms grow alike with the image's size.

``c_v`` asks the other regions: the logarithm of how much foreground has the colour of v and is near, over how much
background. A first minimum without it says which is which.

No pixel decides: the regions are those of the tokenizer. Those at the boundary of the mask are then split into their
regions of the next finer level, which inherit z, have colours of their own, and are decided by the same energy; the
others stay as they are.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spit.interruption import may_stop
from spit.partition import Hierarchy
from spit.segmentation.graph import Floats, Integers, RegionGraph
from spit.segmentation.min_cut import minimum_cut

BOUNDARY = 0.12  # weight of the boundary; a finer level has half of the one above
CONTRAST = 0.5  # s, in the root mean square of the image's differences of colour
MOST = 2.0  # a score beyond it is as sure as this one
COLOR = 1.0  # weight of the other regions' colours
ALIKE = 5.0  # colours this far apart, in CIELAB, count e^(−1/2) as much
NEAR = 0.2  # so do centres this far apart, in √P
FINER = 2  # levels of the hierarchy below the tokens
CRUMB = 0.05  # pieces and holes of a smaller share of the mask go
FIXED = 1e6  # gain for each pixel of a region that is decided already

Choice = NDArray[np.bool_]


def decide(graph: RegionGraph, scores: Floats) -> Choice:
    """The foreground of a graph of regions: the energy's minimum, ``(V,)`` scores to ``(V,)`` bool.

    Example:
        >>> import numpy as np, torch
        >>> from spit.segmentation import RegionGraph, decide
        >>> labels = torch.arange(9).view(3, 3).repeat_interleave(4, 0).repeat_interleave(4, 1)
        >>> scores = np.array([-1, -1, -1, -1, 0.5, -1, -1, -1, -1.0])  # one crumb of the same colour
        >>> decide(RegionGraph.of(torch.zeros(3, 12, 12), labels), scores).any()
        False
    """
    return _minimum(graph, np.clip(scores, -MOST, MOST), BOUNDARY)


def clean(image: Tensor, levels: Sequence[Tensor], scores: Tensor) -> tuple[Tensor, Tensor]:
    """The soft map and the mask of one image from a score for each of its tokens.

    Args:
        image: ``(C, H, W)``, as the model sees it.
        levels: label maps ``(H, W)``, the tokens' own first, then finer ones that lie within it; see
            :func:`finer_levels`.
        scores: log-odds of the tokens, ``(N,)``; positive is foreground, 0 undecided.

    Returns:
        The soft map, ``(H, W)`` float32 in [0, 1], above 0.5 on the mask, and the mask, ``(H, W)`` bool.
    """
    finest = levels[-1].cpu().numpy()
    graph = RegionGraph.of(image, levels[-1])
    ways = [_region_of(finest, level.cpu().numpy()) for level in levels]
    own = np.clip(scores.detach().double().cpu().numpy(), -MOST, MOST)
    tokens = graph.joined(ways[0])
    first = decide(tokens, own)
    evidence = own + COLOR * _color_evidence(tokens, first, tokens, np.arange(len(own)))
    chosen = _minimum(tokens, evidence, BOUNDARY)
    groups, present = ways[0], tokens  # the region of each finest one, and the graph of the present regions
    for depth, way in enumerate(ways[1:], start=1):
        inside = _at_boundary(present, chosen)[groups]
        names, finer = np.unique(np.where(inside, len(chosen) + way, groups), return_inverse=True)
        some = np.zeros(len(names), np.int64)
        some[finer] = np.arange(len(finer))  # one of the finest regions of each
        token, kept, open_ = ways[0][some], chosen[groups[some]], inside[some]
        groups, present = finer, graph.joined(finer)
        evidence = own[token]
        evidence[open_] += COLOR * _color_evidence(tokens, first, present, token, open_)
        chosen = _minimum(present, np.where(open_, evidence, np.where(kept, FIXED, -FIXED)), BOUNDARY / 2**depth)
    chosen = without_crumbs(present, chosen)
    soft = (1 / (1 + np.exp(-evidence)) + chosen) / 2
    painted, mask = (torch.from_numpy(values[groups][finest]).to(image.device)
                     for values in (soft.astype(np.float32), chosen))
    return painted, mask


def finer_levels(hierarchy: Hierarchy, count: int = FINER) -> list[Tensor]:
    """The label maps of the last level of one image's hierarchy and of the next finer ones, at most ``count``."""
    return [hierarchy[level].blocks[0][0] for level in range(len(hierarchy) - 1, 0, -1)[: count + 1]]


def without_crumbs(graph: RegionGraph, chosen: Choice, share: float = CRUMB) -> Choice:
    """The choice without holes, then without pieces, of less than a share of it; the largest piece stays.

    A hole is a piece of the background that does not touch the image's border.
    """
    pieces, area = _pieces(graph, chosen)
    inner = np.bincount(pieces, graph.rim, len(area)) == 0
    filled = chosen | ((area < share * graph.sizes[chosen].sum()) & inner)[pieces]
    pieces, area = _pieces(graph, filled)
    large = (area >= share * graph.sizes[filled].sum()) | (area == area[pieces[filled]].max(initial=0))
    kept: Choice = filled & large[pieces]
    return kept


def _pieces(graph: RegionGraph, chosen: Choice) -> tuple[Integers, Floats]:
    """The piece of each region, and the pixels of each piece."""
    pieces = graph.pieces(chosen)
    return pieces, np.bincount(pieces, graph.sizes, len(chosen)).astype(np.float64)


def _minimum(graph: RegionGraph, scores: Floats, boundary: float) -> Choice:
    """The minimum of the energy, with scores for each pixel of a region and a weight of the boundary."""
    may_stop()
    distance = np.linalg.norm(graph.colors[graph.pairs[:, 0]] - graph.colors[graph.pairs[:, 1]], axis=1)
    scale = CONTRAST * np.sqrt(np.square(distance).mean()) if len(distance) else 0.0
    costs = graph.lengths * np.exp(-np.square(distance / max(scale, 1e-9)) / 2)
    return minimum_cut(graph.sizes * scores, graph.pairs, boundary * np.sqrt(graph.sizes.sum()) * costs)


def _color_evidence(known: RegionGraph, chosen: Choice, asking: RegionGraph, own: Integers,
                    which: Choice | slice = slice(None)) -> Floats:
    """How much chosen area has the colour and the place of some regions, over how much that is not; a logarithm.

    Args:
        known, chosen: the regions that are asked, and which of them are foreground.
        asking, which: the regions that ask.
        own: for each region of ``asking``, the one of ``known`` that it lies in, which is not asked.
    """
    one, other = _places(asking, asking.sizes.sum())[which], _places(known, asking.sizes.sum())
    # The products of torch and einsum, since threads of numpy's BLAS spin beside those that work on other images.
    alike = (torch.from_numpy(one) @ torch.from_numpy(other).T).numpy()
    alike -= np.square(one).sum(1)[:, None] / 2
    alike -= np.square(other).sum(1) / 2
    np.exp(alike, out=alike)
    alike[np.arange(len(alike)), own[which]] = 0
    mean = known.sizes.mean()
    inside, outside = (np.einsum("vu,u->v", alike, (known.sizes * side).astype(np.float32))
                       for side in (chosen, ~chosen))
    evidence: Floats = np.log((inside + mean) / (outside + mean)).clip(-MOST, MOST)
    return evidence


def _places(graph: RegionGraph, pixels: float) -> NDArray[np.float32]:
    """Colours and centres of regions, in the units in which a distance of 1 counts e^(−1/2) as much as none."""
    places = np.concatenate([graph.colors / ALIKE, graph.centers / (NEAR * np.sqrt(pixels))], axis=1)
    return places.astype(np.float32)


def _at_boundary(graph: RegionGraph, chosen: Choice) -> Choice:
    """The regions with a neighbour on the other side."""
    found = np.zeros(len(chosen), bool)
    found[graph.pairs[chosen[graph.pairs[:, 0]] != chosen[graph.pairs[:, 1]]]] = True
    return found


def _region_of(fine: NDArray[np.int32], coarse: NDArray[np.int32]) -> Integers:
    """For each region of a finer label map, the region of a coarser one that it lies in."""
    way = np.zeros(int(fine.max()) + 1, np.int64)
    way[fine.ravel()] = coarse.ravel()
    return way
