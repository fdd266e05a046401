from collections.abc import Callable
from math import inf, nan

import pytest
import torch
from torch import Tensor

from spit import kernels
from spit.tokenizers import SuperpixelTokenizer
from spit.tokenizers.preprocess import superpixel_features

Photo = Callable[[str, int], Tensor]


def test_defaults_are_the_public_ones() -> None:
    assert SuperpixelTokenizer() == SuperpixelTokenizer(
        levels=4, compactness=0.0, merge_threshold=0.0, max_tokens=None, refine=0)


@pytest.mark.parametrize("options", [
    {},
    {"levels": 1},
    {"compactness": 1.0},
    {"similarity": "euclidean"},
    {"self_loop": "paper"},
    {"self_loop": "none"},
    {"merge_threshold": 0.2},
    {"max_tokens": 5},
    {"similarity": "variance"},
    {"features": "saturated"},
    {"refine": 2},
])
def test_smoke(photo: Photo, options: dict[str, object]) -> None:
    image = photo("chelsea", 48)
    part = SuperpixelTokenizer(**options)(image)
    assert part.labels.shape == (1, 48, 48)
    assert part.labels.dtype == torch.int32
    assert part.counts.dtype == torch.int64
    assert part.frames is None
    assert part.labels.unique().tolist() == list(range(int(part.counts[0])))


@pytest.mark.parametrize("count", [1, 5, 196, 40 * 48])
@pytest.mark.parametrize("options", [{}, {"compactness": 10.0}, {"refine": 2}])
def test_the_tree_has_exactly_as_many_tokens_as_asked_for(
        photo: Photo, pieces: Callable[[Tensor], int], count: int, options: dict[str, float]) -> None:
    images = [photo("chelsea", 48)[:, :40], photo("coffee", 48)[:, :40], torch.zeros(3, 40, 48, dtype=torch.uint8)]
    part = SuperpixelTokenizer(method="tree", max_tokens=count, **options)(images)
    assert part.counts.tolist() == [count] * 3
    assert [pieces(labels) for labels in part.labels] == [count] * 3


def test_the_tree_without_a_count_has_a_token_for_256_pixels(photo: Photo) -> None:
    tokenizer = SuperpixelTokenizer(method="tree")
    assert tokenizer([photo("chelsea", 48), photo("chelsea", 64)]).counts.tolist() == [9, 16]
    assert tokenizer(torch.zeros(3, 5, 5)).counts.tolist() == [1]


def test_the_tree_s_counts_are_nested(photo: Photo) -> None:
    image = photo("chelsea", 48)
    fine, coarse = (SuperpixelTokenizer(method="tree", max_tokens=count)(image).blocks[0][0] for count in (60, 20))
    assert len({(int(one), int(other)) for one, other in zip(fine.flatten(), coarse.flatten(), strict=True)}) == 60


def test_options_that_the_tree_does_not_read(photo: Photo) -> None:
    plain = SuperpixelTokenizer(method="tree", max_tokens=9)
    for name, value in {"features": "saturated", "self_loop": "none"}.items():
        assert plain(photo("chelsea", 48)) == plain.replace(**{name: value})(photo("chelsea", 48))


@pytest.mark.parametrize("refine", [0, 2])
def test_a_hierarchy_of_the_tree(photo: Photo, refine: int) -> None:
    images = torch.stack([photo("chelsea", 48), photo("coffee", 48)])
    tokenizer = SuperpixelTokenizer(method="tree", levels=3, max_tokens=36, refine=refine)
    hier = tokenizer.hierarchy(images)
    assert hier[-1] == tokenizer(images)
    assert hier.counts[[0, -1]].tolist() == [[48 * 48] * 2, [36] * 2]
    if refine == 0:
        assert hier.counts[:, 0].tolist() == [2304, 576, 144, 36]
        assert hier[2] == tokenizer.replace(max_tokens=144)(images)


def test_every_option_matters() -> None:
    image = torch.rand(3, 48, 48, generator=torch.Generator().manual_seed(0))  # photographs have few loops that win
    variants: list[dict[str, object]] = [
        {}, {"levels": 3}, {"compactness": 0.3}, {"similarity": "euclidean"},
        {"self_loop": "paper"}, {"self_loop": "none"}, {"merge_threshold": 0.2},
        {"max_tokens": 5}, {"similarity": "variance"}, {"features": "saturated"}, {"refine": 1}, {"refine": 2},
        {"method": "tree"},
        {"method": "tree", "compactness": 3.0}, {"method": "tree", "max_tokens": 20},
    ]
    maps = [SuperpixelTokenizer(**options)(image).labels for options in variants]
    for i, labels in enumerate(maps):
        for j in range(i):
            assert not torch.equal(labels, maps[j]), (variants[i], variants[j])


@pytest.mark.parametrize(("self_loop", "clip"), [("clipped", 0.75), ("paper", inf), ("none", None)])
def test_options_reach_the_rules(
    photo: Photo, monkeypatch: pytest.MonkeyPatch, self_loop: str, clip: float | None
) -> None:
    seen = []
    kernel = kernels.superpixel_labels
    monkeypatch.setattr(kernels, "superpixel_labels",
                        lambda features, rules: seen.append(rules) or kernel(features, rules))
    SuperpixelTokenizer(levels=3, compactness=0.25, merge_threshold=0.125, max_tokens=9, similarity="euclidean",
                        self_loop=self_loop)(photo("coffee", 16))
    assert seen == [kernels.Rules(levels=3, similarity="euclidean", loop_clip=clip, compactness=0.25,
                                  merge_threshold=0.125, max_tokens=9)]


@pytest.mark.parametrize("size", [(1, 1), (1, 2), (2, 1), (1, 50), (50, 1), (2, 2), (3, 40)])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_small_and_thin_images(pieces: Callable[[Tensor], int], size: tuple[int, int], channels: int) -> None:
    images = torch.rand(2, channels, *size, generator=torch.Generator().manual_seed(0))
    part = SuperpixelTokenizer(levels=2)(images)
    for labels, count in zip(part.labels, part.counts.tolist(), strict=True):
        assert labels.shape == size
        assert pieces(labels) == count == int(labels.max()) + 1


@pytest.mark.parametrize("value", [0, 1, 124, 255])
def test_a_flat_image_is_one_region(value: int) -> None:
    part = SuperpixelTokenizer(levels=1)(torch.full((2, 3, 13, 7), value, dtype=torch.uint8))
    assert part.counts.tolist() == [1, 1]


def test_two_flat_halves_are_two_regions_of_level_1_and_meet_where_the_colour_changes() -> None:
    image = torch.zeros(3, 8, 10, dtype=torch.uint8)
    image[:, :, 4:] = 255
    part = SuperpixelTokenizer(levels=1)(image)
    assert part.counts.tolist() == [2]
    assert part.boxes().tolist() == [[0, 0, 8, 4], [0, 4, 8, 10]]


def test_compactness_fills_boxes(photo: Photo) -> None:
    def filled(compactness: float) -> float:
        part = SuperpixelTokenizer(levels=3, compactness=compactness)(photo("coffee", 96))
        boxes = part.boxes().long()
        return float((part.sizes() / (boxes[:, 2:] - boxes[:, :2]).prod(1)).mean())

    assert filled(0.0) + 0.05 < filled(0.5)


def test_the_reference_backend_gives_the_same(photo: Photo) -> None:
    images = [photo("coffee", 40), photo("rocket", 40)[:, 7:]]
    tokenizer = SuperpixelTokenizer(levels=3, compactness=0.1, merge_threshold=0.02, max_tokens=30)
    for features in ("paper", "saturated"):
        with kernels.backend("reference"):
            expected = tokenizer(images)
        got = tokenizer(images)
        assert torch.equal(got.offsets, expected.offsets)
        assert all(map(torch.equal, got.labels, expected.labels))
        with kernels.backend("reference"):
            expected_features = superpixel_features(images[0][None], features)
        assert torch.equal(superpixel_features(images[0][None], features), expected_features)


def test_features_say_how_many_channels_they_take() -> None:
    with pytest.raises(ValueError, match="features='saturated' needs images with 1 or 3 channels, got 4"):
        SuperpixelTokenizer(features="saturated")(torch.zeros(4, 8, 8))


@pytest.mark.parametrize(("options", "message"), [
    ({"levels": 0}, "levels of at least 1, got 0"),
    ({"levels": -1}, "got -1"),
    ({"compactness": -0.1}, "compactness of at least 0, got -0.1"),
    ({"compactness": 1.1}, "got 1.1"),
    ({"compactness": nan}, "got nan"),
    ({"merge_threshold": -1.0}, "merge_threshold of at least 0, got -1.0"),
    ({"merge_threshold": nan}, "got nan"),
    ({"merge_threshold": inf}, "got inf"),
    ({"max_tokens": 0}, "max_tokens of at least 1, got 0"),
    ({"max_tokens": -5}, "got -5"),
    ({"refine": -1}, "refine of at least 0, got -1"),
    ({"features": "rgb"}, "features to be one of paper, saturated, got 'rgb'"),
    ({"similarity": "dot"}, "similarity to be one of cosine, euclidean, variance, got 'dot'"),
    ({"self_loop": "maybe"}, "self_loop to be one of clipped, paper, none, got 'maybe'"),
])
def test_errors_name_what_came(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SuperpixelTokenizer(**options)


@pytest.mark.parametrize("options", [{"levels": 2.5}, {"levels": 4.0}, {"max_tokens": 2.5}, {"max_tokens": 100.0},
                                     {"levels": "4"}, {"self_loop": True}])
def test_types_are_checked(options: dict[str, object]) -> None:
    """A bound of 2.5 must not reach the kernel: no number of regions above it is ever cut to it."""
    with pytest.raises((TypeError, ValueError), match=str(next(iter(options.values())))):
        SuperpixelTokenizer(**options)
