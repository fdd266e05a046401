"""φ on arrays agrees with FeatureExtractor."""

from typing import Any

import pytest
import torch

import spit
from runtime.test_tokenizers import image
from spit.contrast import contrast
from spit.features.color import NORMALIZATIONS, standardize
from spit.kernels import tables
from spit.kernels.rules import SCALE
from spit.runtime.features import make_extractor
from spit.runtime.tokenizers import make_tokenizer


@pytest.mark.parametrize("tokenizer", ["patch", "voronoi", "superpixel"])
@pytest.mark.parametrize("options", [
    {},
    {"fill": "image", "normalization": "imagenet"},
    {"fill": "crop", "normalization": "imagenet", "position_sigma": 0.0, "position_bins": 5, "resolution": 9},
    {"fill": "crop"},
    {"fill": "mean", "gradient_contrast": 27.8},
    {"gradients": False, "position_sigma": 0.0, "normalization": "none"},
    {"gradient_sigma": 0.0, "resolution": 5, "position_bins": 3, "gradient_bins": 4},
    {"gradient_sigma": 0.4},
])
def test_features_are_torch_s(tokenizer: str, options: dict[str, Any]) -> None:
    pixels = image(50, 37, 5)
    tau, phi = spit.create_tokenizer(tokenizer), spit.FeatureExtractor(**options)
    expected = phi(pixels, tau(pixels)).values
    got = make_extractor(phi.to_dict())(pixels.numpy(), make_tokenizer(tokenizer, tau.config())(pixels.numpy()))
    assert got.shape == expected.shape
    torch.testing.assert_close(torch.from_numpy(got), expected, atol=3e-6, rtol=1e-5)


def test_tables_are_the_formulas_of_tensors() -> None:
    values = torch.arange(256, dtype=torch.float64) / 255
    for channels in (1, 3, 4):
        curve = contrast(values.expand(1, channels, 1, 256))[0, :, 0]
        assert torch.equal(torch.from_numpy(tables.contrast_table(channels)), (curve * SCALE).round().short())
    plain = values.float().expand(1, 3, 1, 256)
    assert torch.equal(torch.from_numpy(tables.normalization_table("imagenet", 3)), standardize(plain)[0, :, 0])
    assert tuple(NORMALIZATIONS) == tables.NORMALIZATIONS


def test_what_it_does_not_have_is_refused() -> None:
    grey = image(16, 16, 0, channels=1).numpy()
    with pytest.raises(ValueError, match="expected an image of 3 channels"):
        make_extractor({})(grey, make_tokenizer("patch", {})(grey))
