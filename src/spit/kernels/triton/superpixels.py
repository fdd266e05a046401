"""Superpixel contraction (§2.2) in Triton: ``reference.superpixels``, bit for bit. ``graph.py`` contracts."""

import torch
from torch import Tensor

from spit.kernels.numba.graph import contract_levels
from spit.kernels.portable import Levels
from spit.kernels.recording import replay
from spit.kernels.reference.forest import keep_heaviest
from spit.kernels.reference.superpixels import flatten
from spit.kernels.rules import Rules
from spit.kernels.triton.graph import Graph
from spit.kernels.triton.regions import compose
from spit.tokens import offsets_of


def superpixels(features: Tensor, rules: Rules) -> Levels:
    """See :func:`spit.kernels.reference.superpixels`."""
    graph = Graph(features.contiguous(), rules)
    contract_levels(graph)
    return graph.levels() if rules.max_tokens is None else _bounded(graph, rules.max_tokens)


def superpixel_labels(features: Tensor, rules: Rules) -> tuple[Tensor, Tensor]:
    """See :func:`spit.kernels.reference.superpixel_labels`.

    Nothing waits for the device, except the bound, which counts what is left.
    """
    if rules.max_tokens is not None:
        levels = superpixels(features, rules)
        return flatten(levels, features, compose), levels[-1][1]
    labels, counts = replay(_last_level, (features,), rules)
    return labels, counts


def _last_level(tensors: tuple[Tensor, ...], rules: Rules) -> tuple[Tensor, ...]:
    graph = Graph(tensors[0].contiguous(), rules)
    contract_levels(graph)
    return graph.final_labels(), graph.counts[-1]


def _bounded(graph: Graph, bound: int) -> Levels:
    """Join regions until at most ``bound`` are left in every image: see ``reference.superpixels``."""
    levels, counts = graph.levels(), graph.counts[-1]
    while int(counts.max()) > bound:
        chosen, weights = graph.link_regions(None)
        filled = graph.filled(counts)
        first = (counts.cumsum(0) - counts)[:, None]  # keep_heaviest numbers regions image after image
        kept = keep_heaviest((chosen + first)[filled], weights[filled], bound, counts)
        chosen[filled] = (kept - first.expand_as(filled)[filled]).int()
        graph.contract(chosen)
        counts = graph.counts[-1]
    steps = graph.levels()[len(levels):]
    if not steps:
        places = torch.arange(graph.room, device=counts.device, dtype=torch.int32).expand(len(counts), -1)
        return [*levels, (places[graph.filled(counts)], counts)]
    below = [offsets_of(counts) for _, counts in (levels[-1], *steps)]
    return [*levels, (compose([parents for parents, _ in steps], below), counts)]
