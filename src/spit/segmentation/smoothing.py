"""Scores of regions, smoothed over the graph of regions where colours agree."""

import numpy as np

from spit.segmentation.graph import Floats, RegionGraph

STRENGTH = 48.0  # β: pixels of disagreement that one pair of neighbouring pixels of one colour outweighs
CONTRAST = 10.0  # σ: colour difference in CIELAB at which neighbours count 1/e
STEPS = 200  # at most; tokens of photographs take about 40
TOLERANCE = 1e-9  # of the residual, relative to the right side


def smooth(graph: RegionGraph, scores: Floats, strength: float = STRENGTH, contrast: float = CONTRAST) -> Floats:
    """The scores s that minimise ``Σ_v a_v (s_v − g_v)² + β Σ_uv l_uv exp(−ΔE_uv² / σ²) (s_u − s_v)²``.

    With a the sizes of regions, g the given scores, l the lengths of shared boundaries and ΔE the distance of mean
    colours in CIELAB. A score spreads over neighbours of its colour and stops at edges: tokens that a linear head
    sees one by one are made to agree. The minimum of this convex energy solves one linear system, by conjugate
    gradients in float64 from the given scores, with the diagonal as preconditioner. The area-weighted mean of the
    scores stays as it is.

    Args:
        graph: of one image.
        scores: one for each region.
        strength: β; 0 returns the scores.
        contrast: σ.

    Shape:
        scores ``(V,)`` to ``(V,)`` float64.
    """
    if scores.shape != graph.sizes.shape:
        raise ValueError(f"expected one score for each of the {len(graph.sizes)} regions, got shape {scores.shape}")
    one, other = graph.pairs.T
    difference = np.square(graph.colors[one] - graph.colors[other]).sum(1)
    weights = strength * graph.lengths * np.exp(-difference / contrast**2)
    count = len(scores)
    diagonal = graph.sizes + np.bincount(one, weights, count) + np.bincount(other, weights, count)

    def apply(values: Floats) -> Floats:
        across = np.bincount(one, weights * values[other], count) + np.bincount(other, weights * values[one], count)
        answer: Floats = diagonal * values - across
        return answer

    answer = scores.astype(np.float64)
    wanted = graph.sizes * answer
    residual = wanted - apply(answer)
    direction = scaled = residual / diagonal
    product = residual @ scaled
    for _ in range(STEPS):
        if np.abs(residual).max(initial=0.0) <= TOLERANCE * np.abs(wanted).max(initial=0.0):
            break
        image = apply(direction)
        step = product / (direction @ image)
        answer, residual = answer + step * direction, residual - step * image
        scaled = residual / diagonal
        product, before = residual @ scaled, product
        direction = scaled + product / before * direction
    return answer
