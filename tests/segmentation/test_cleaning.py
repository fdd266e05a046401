"""Cleaning: crumbs and holes go, the outline follows finer regions, and the soft map agrees with the mask."""

import numpy as np
import torch

from spit.evaluation.masks import count_parts
from spit.segmentation import RegionGraph, clean, decide
from spit.segmentation.cleaning import _color_evidence, finer_levels, without_crumbs
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer


def disk(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """A noisy photo of a bright disk on dark ground, and the disk."""
    rows, columns = torch.meshgrid(torch.arange(96), torch.arange(96), indexing="ij")
    inside = (rows - 46.0) ** 2 + (columns - 50.0) ** 2 < 26**2
    noise = torch.randn(3, 96, 96, generator=torch.Generator().manual_seed(seed)) * 6
    return (torch.where(inside, 190.0, 60.0) + noise).clamp(0, 255).to(torch.uint8), inside


def levels_of(image: torch.Tensor) -> list[torch.Tensor]:
    labels = PatchTokenizer(8)(image)
    return finer_levels(SuperpixelTokenizer().hierarchy(image).below(labels))


def scores_of(inside: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    share = torch.bincount(labels.flatten(), inside.flatten().double()) / torch.bincount(labels.flatten())
    return 4 * (share - 0.5)


def test_the_outline_follows_finer_regions() -> None:
    image, inside = disk()
    levels = levels_of(image)
    scores = scores_of(inside, levels[0])
    soft, mask = clean(image, levels, scores)
    coarse = (scores > 0)[levels[0].long()]
    assert (mask != inside).float().mean() < (coarse != inside).float().mean() / 4
    assert count_parts(mask.numpy()) == (1, 0)
    assert torch.equal(mask, soft > 0.5)
    assert (soft.dtype, soft.shape) == (torch.float32, (96, 96))
    assert float(soft.min()) < 0.1
    assert float(soft.max()) > 0.9


def test_crumbs_and_holes_go() -> None:
    image, inside = disk()
    levels = levels_of(image)
    scores = scores_of(inside, levels[0])
    scores[0], scores[66] = 0.5, -0.5  # a corner, and the middle of the disk
    assert count_parts(((scores > 0)[levels[0].long()]).numpy()) == (2, 1)
    assert count_parts(clean(image, levels, scores)[1].numpy()) == (1, 0)
    chosen = decide(RegionGraph.of(image, levels[0]), scores.numpy())
    assert (chosen[0], chosen[66]) == (False, True)


def test_inputs_and_single_regions() -> None:
    image = torch.full((3, 8, 8), 9, dtype=torch.uint8)
    labels = torch.zeros(8, 8, dtype=torch.int32)
    for score in (1.0, -1.0, 0.0):
        scores = torch.tensor([score])
        soft, mask = clean(image, [labels], scores)
        assert mask.all() if score > 0 else not mask.any()
        assert ((soft > 0.5) == mask).all()
        assert scores.tolist() == [score]


def test_small_parts_alone_go() -> None:
    labels = PatchTokenizer(2)(torch.zeros(3, 20, 20)).blocks[0][0]
    graph = RegionGraph.of(torch.zeros(3, 20, 20), labels)
    kind = np.zeros((10, 10), bool)
    kind[1:7, 1:9] = True
    kind[3, 4] = False  # a hole
    kind[9, 9] = True  # a crumb
    kept = without_crumbs(graph, kind.ravel()).reshape(10, 10)
    assert kept[3, 4]
    assert not kept[9, 9]
    assert kept.sum() == 48
    assert not without_crumbs(graph, np.zeros(100, bool)).any()
    lonely = np.zeros(100, bool)
    lonely[5] = True
    assert without_crumbs(graph, lonely).sum() == 1, "the largest piece stays, however small"


def test_evidence_of_colors_pair_by_pair() -> None:
    image, _ = disk()
    labels = PatchTokenizer(24)(image).blocks[0][0]
    graph = RegionGraph.of(image, labels)
    chosen = np.arange(16) % 3 == 0
    which = np.arange(16) < 5
    found = _color_evidence(graph, chosen, graph, np.arange(16), which)
    sums = np.full((5, 2), 24.0**2)
    for one in range(5):
        for other in set(range(16)) - {one}:
            color = np.square(graph.colors[one] - graph.colors[other]).sum() / 5**2
            place = np.square(graph.centers[one] - graph.centers[other]).sum() / (0.2 * 96) ** 2
            sums[one, 0 if chosen[other] else 1] += 24**2 * np.exp(-(color + place) / 2)
    np.testing.assert_allclose(found, np.log(sums[:, 0] / sums[:, 1]), atol=1e-4)
    assert len(_color_evidence(graph, chosen, graph, np.arange(16), np.zeros(16, bool))) == 0
