"""The checkpoints that come with spit: whole, small, described, and able to see."""

from pathlib import Path

import pytest
import torch
from skimage import data

import spit
from spit import registry
from spit.attribution.prototypes import find_prototypes, load_prototypes
from spit.data.classes import imagenet_classes
from spit.data.crops import central_square

NAMES = ("spit_tiny_16.deit_retrofit", "spit_tiny_16.elastic_retrofit", "spit_tiny_16.half_retrofit",
         "spit_tiny_16.masked_retrofit", "rvit_tiny_16.deit_retrofit")
MEGABYTES = {"model-*.safetensors": 12, "prototypes.safetensors": 3}
CATS = {"tabby", "tiger cat", "Egyptian cat"}


@pytest.fixture(params=NAMES)
def folder(request: pytest.FixtureRequest) -> Path:
    return registry.CHECKPOINTS / request.param


def test_files(folder: Path) -> None:
    """Half precision, at most 12 MB, prototypes 3, with a card that says where it comes from."""
    for pattern, most in MEGABYTES.items():
        [file] = folder.glob(pattern)
        assert file.stat().st_size <= most * 1e6
    card = (folder / "README.md").read_text()
    for word in ("Apache-2.0", "DeiT-Tiny", "photos", "top-1", "spit retrofit", "H200"):
        assert word in card
    assert next(folder.glob("model-*.safetensors")).name in (folder / "config.json").read_text()


def test_every_name_with_weights_is_tested() -> None:
    assert sorted(spit.list_models(pretrained=True)) == sorted(NAMES)


def test_it_loads_offline_and_sees_a_cat(folder: Path) -> None:
    model = spit.create_model(folder.name, pretrained=True)
    assert (model.config.num_classes, model.config.gradients) == (1000, True)
    image = central_square(torch.from_numpy(data.chelsea()).permute(2, 0, 1), 224)
    with torch.inference_mode():
        guesses = model(image[None]).softmax(1)[0].topk(5).indices.tolist()
    assert CATS & {imagenet_classes()[guess] for guess in guesses}


def test_prototypes_are_found_by_weights_and_by_name(folder: Path) -> None:
    found = find_prototypes(spit.create_model(folder.name, pretrained=True))
    assert found.values.shape == (1000, 5, 192)
    assert found.about == load_prototypes(folder.name).about


def test_a_token_of_the_masked_model_sees_its_region_alone() -> None:
    """Other pixels outside a region leave its features as they are; the model that sees squares notices."""
    image = central_square(torch.from_numpy(data.chelsea()).permute(2, 0, 1), 64)
    for name, blind in (("masked_retrofit", True), ("deit_retrofit", False)):
        extractor = spit.create_model(f"spit_tiny_16.{name}").extractor
        part = spit.SuperpixelTokenizer()(image)
        region = int(part.sizes().argmax())
        other = torch.where(part.labels[0] == region, image, 255 - image)
        features = [extractor(each, part).values[region, : 3 * 16 * 16] for each in (image, other)]
        assert torch.allclose(*features) == blind
