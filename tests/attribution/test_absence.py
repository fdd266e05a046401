import pytest
import torch

import spit
from attribution.games import generator
from spit.attribution.absence import ImageTokens, embedded, image_tokens, patch_cells
from spit.attribution.occlusion import paint_over
from spit.config import ModelConfig
from spit.forward_pass import ForwardPass


def passed(images, fill):
    config = ModelConfig(tokenizer="superpixel", tokenizer_options={"levels": 3}, resolution=4, position_bins=4,
                         gradients=False, fill=fill, width=24, depth=1, heads=3, num_classes=3)
    model = spit.SpitModel(config).eval()
    return ForwardPass(model, images, *model.tokenize(images))


def test_cells_by_hand():
    labels = torch.tensor([[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 2, 2], [2, 2, 2, 2]])
    windows = torch.tensor([[0, 0, 4, 4], [0, 2, 2, 4], [-2, 0, 2, 4]])
    assert patch_cells(labels, windows, 2).tolist() == [[0, 1, 2, 2], [1, 1, 1, 1], [0, 1, 0, 1]]


def test_subsets_by_hand():
    """Two channels, two cells; the last column is no colour."""
    features = torch.arange(15.0).view(3, 5)
    tokens = ImageTokens(features, torch.tensor([[0, 1], [1, 2], [2, 2]]), torch.tensor([[-1.0], [-2.0]]))
    before = features.clone()
    found = tokens.subsets(torch.tensor([[True, False, False], [False, True, True]]))
    assert found.offsets.tolist() == [0, 1, 3]
    assert found.values.tolist() == [[0, -1, 2, -2, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14]]
    assert torch.equal(features, before)


@pytest.mark.parametrize("fill", ["image", "zero"])
def test_parts_of_subsets_add_up(images, fill):
    """To γ of their features; a token that no cell of its own patch shows is there too."""
    seen = passed(images[:1], fill)
    [tokens], embedder = image_tokens(seen), seen.model.embedder
    if tokens.cells is not None:
        tokens.cells[3] = 4
    present = torch.rand(9, len(tokens.features), generator=generator()) < 0.5
    present[0], present[1], present[2, 3:5] = True, False, torch.tensor([True, False])
    with torch.no_grad():
        found, subsets = embedded(tokens, embedder).subsets(present), tokens.subsets(present)
        expected = embedder.project(subsets.values)
    assert torch.equal(found.offsets, subsets.offsets)
    torch.testing.assert_close(found.values, expected, atol=1e-5, rtol=1e-4)


def test_all_tokens_are_what_the_model_sees(images):
    seen = passed(images, "image")
    for own, tokens in zip(seen.features, image_tokens(seen), strict=True):
        assert tokens.cells.shape == (len(own), 16)
        assert torch.equal(tokens.subsets(torch.ones(1, len(own), dtype=torch.bool)).values, own)


def test_patches_become_those_of_a_painted_image(images):
    """Beside the cells that bilinear interpolation mixes of both."""
    seen = passed(images[:1], "image")
    [tokens], [labels] = image_tokens(seen), seen.partition.blocks[0]
    present = torch.rand(1, len(tokens.features), generator=generator()) < 0.7
    image = paint_over(images[:1], ~present[:, labels.long()])
    painted = seen.model.extractor(image, seen.partition).values[present[0]]
    plain, found = tokens.features[present[0]], tokens.subsets(present).values
    near, far = ((own[:, :48] - painted[:, :48]).abs().mean() for own in (found, plain))
    assert near < 0.5 * far
    assert torch.equal(found[:, 48:], plain[:, 48:])


@pytest.mark.parametrize("fill", ["zero", "mean"])
def test_patches_without_neighbours_stay(images, fill):
    assert all(tokens.cells is None for tokens in image_tokens(passed(images, fill)))
