"""Superpixel contraction (§2.2) on the CPU, image by image: ``reference.superpixels``, bit for bit."""

import numpy as np
import torch
from torch import Tensor

from spit.kernels.cpu.contraction import (
    F,
    adjacency,
    components,
    contract_edges,
    keep_heaviest,
    link_pixels,
    link_regions,
    loop_weights,
    merge_below,
    region_points,
    sum_pixels,
    sum_regions,
)
from spit.kernels.cpu.regions import compose
from spit.kernels.cpu.threads import Array, for_each_image
from spit.kernels.reference.superpixels import climb
from spit.kernels.rules import EUCLIDEAN, Levels, Rules, round_target


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """See :func:`spit.kernels.reference.superpixels`."""
    planes = features.contiguous().numpy()
    images: list[list[Array]] = [[] for _ in planes]

    def contract(b: int) -> None:
        images[b] = _contract_image(planes[b], rules)

    for_each_image(contract, len(planes))
    return [(torch.cat([torch.from_numpy(parents) for parents in level]),
             torch.tensor([int(parents.max()) + 1 for parents in level]))
            for level in zip(*images, strict=True)]


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """See :func:`spit.kernels.reference.superpixel_labels`."""
    levels = superpixels(features, rules)
    return climb(levels, features, compose), levels[-1][1]


def _contract_image(planes: Array, rules: Rules) -> list[Array]:
    _, height, width = planes.shape
    labels, count = components(link_pixels(planes, rules.kind))
    levels = [labels]
    edges = adjacency(labels.reshape(height, width))
    sums, sizes, boxes = sum_pixels(planes, labels, count)
    ratio = (F(rules.compactness), F(1 - rules.compactness))

    def best_neighbors(loops: Array) -> tuple[Array, Array]:
        points = region_points(sums, sizes, rules.kind)
        return link_regions(edges, points, sizes, boxes, loops, ratio, rules.kind)

    def contract(parents: Array, count: int) -> None:
        nonlocal edges, sums, sizes, boxes
        edges = contract_edges(edges, parents)
        sums, sizes, boxes = sum_regions(sums, sizes, boxes, parents, count)

    for _ in range(1, rules.levels):
        clip = -1.0 if rules.loop_clip is None else rules.loop_clip
        _, chosen = best_neighbors(loop_weights(sizes, rules.loop_mean, clip))
        labels, count = components(chosen)
        levels.append(labels)
        contract(labels, count)
    if rules.merge_threshold > 0:
        near = F(min(rules.merge_threshold * rules.merge_threshold, float(np.finfo(F).max)))
        labels, count = components(merge_below(edges, region_points(sums, sizes, EUCLIDEAN), near))
        levels.append(labels)
        contract(labels, count)
    if rules.max_tokens is not None:
        parents = np.arange(len(sizes), dtype=np.int32)
        while len(sizes) > rules.max_tokens:
            weights, chosen = best_neighbors(np.empty(0, np.float32))
            target = round_target(len(sizes), rules.max_tokens)
            labels, count = components(keep_heaviest(weights, chosen, target))
            contract(labels, count)
            parents = labels[parents]
        levels.append(parents)
    return levels
