"""The parts of the authors' release against its formulas in docs/published.md, written a second time."""

import hashlib
from collections.abc import Callable

import numpy as np
import pytest
import torch
from skimage import data
from torch import Tensor

import spit
from interop.published.test_loader import model as release_model
from paper.published_formulas import regions, tokens
from spit.interop.published.contraction import ONE, published_superpixels
from spit.interop.published.features import PublishedFeatures
from spit.interop.published.preprocess import published_features
from spit.interop.published.tokenizers import PublishedTokenizer

Photo = Callable[[str, int], Tensor]
Texture = Callable[[int, tuple[int, ...], int, int], Tensor]


@pytest.mark.parametrize("compactness", [0.0, 0.1])
@pytest.mark.parametrize("name", ["coffee", "chelsea"])
def test_regions_of_photographs(photo: Photo, name: str, compactness: float) -> None:
    image = photo(name, 40)[:, :33]
    tokenizer = PublishedTokenizer(compactness=compactness, merge_threshold=0.2)
    hier = tokenizer.hierarchy(image)
    expected = regions(published_features(image[None])[0].numpy(), 4, compactness, 0.2)
    for level, labels in enumerate(expected, start=1):
        assert np.array_equal(hier[level].labels[0].numpy(), labels), level


@pytest.mark.parametrize("seed", range(22))
def test_regions_where_everything_is_tied(texture: Texture, seed: int) -> None:
    features = texture(seed, (1, 4, 7, 9), -ONE, ONE)
    found = published_superpixels(features, 3, 0.1 * (seed % 2), 0.3)
    labels = np.arange(63)
    for (parents, _), expected in zip(found, regions(features[0].numpy(), 3, 0.1 * (seed % 2), 0.3), strict=True):
        labels = parents.numpy()[labels]
        assert np.array_equal(labels.reshape(7, 9), expected)


@pytest.mark.parametrize(("gradients", "sigma"), [(True, 0.05), (True, 0.025), (False, 0.025)])
@pytest.mark.parametrize("size", [(36, 36), (29, 40)])
def test_tokens(photo: Photo, size: tuple[int, int], gradients: bool, sigma: float) -> None:
    image = photo("coffee", 40)[:, : size[0], : size[1]]
    part = PublishedTokenizer(levels=3)(image)
    extractor = PublishedFeatures(resolution=8, position_sigma=sigma, gradient_sigma=sigma, gradients=gradients)
    got = extractor(image, part).values
    expected = tokens(image.double().numpy() / 255, part.labels[0].long().numpy(), 8, sigma, gradients)
    assert got.shape == (len(expected), extractor.width)
    assert np.abs(got.numpy() - expected).max() < 1e-5
    torch.testing.assert_close(extractor(image.float() / 255, part).values, got, rtol=0, atol=1e-5)


def test_labels_stay_as_they_were_compared_with_the_release() -> None:
    """Digests of what passed tests/paper/test_golden.py, for machines without ../shared."""
    image = torch.from_numpy(data.astronaut()[144:368, 144:368]).movedim(-1, 0)
    found = {}
    for compactness in (0.0, 0.1):
        labels = PublishedTokenizer(compactness=compactness)(image).labels
        found[compactness] = (int(labels.max()) + 1, hashlib.sha256(labels.numpy().tobytes()).hexdigest()[:16])
    assert found == {0.0: (210, "925fbe16b3538a6b"), 0.1: (236, "5d6b97d13b35bf21")}


def test_an_image_is_cut_alone_as_in_any_company(photo: Photo) -> None:
    images = torch.stack([photo(name, 48) for name in ("coffee", "chelsea", "astronaut")])
    tokenizer = PublishedTokenizer(compactness=0.1, merge_threshold=0.05)
    model = release_model(gradients=False, depth=1)
    together, tokenized = tokenizer(images), model.tokenize(images)[1].split()
    for index, image in enumerate(images):
        assert torch.equal(tokenizer(image).labels[0], together.labels[index])
        assert torch.equal(model.tokenize(image)[1].values, tokenized[index])


def test_a_patch_of_its_own_size_is_its_pixels(photo: Photo) -> None:
    image = photo("coffee", 32)
    values = PublishedFeatures()(image, spit.PatchTokenizer(16)(image)).values
    colors = values.view(4, 16, 16, 5)[..., :3].movedim(-1, 1)
    pixels = spit.features.color.normalize(image[None], "contrast")[0]
    assert torch.equal(colors[1], pixels[:, :16, 16:])

