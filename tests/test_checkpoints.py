"""The checkpoints of spit-vit and spit-vit-models: whole, small, described, and able to see."""

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
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def file(pattern: str) -> Path:
    [path] = registry.checkpoint_files(pattern)
    return path


def test_files(name: str) -> None:
    """Half precision, at most 12 MB, prototypes 3, with a card that says where it comes from."""
    for pattern, most in MEGABYTES.items():
        assert file(f"{name}/{pattern}").stat().st_size <= most * 1e6
    card = file(f"{name}/README.md").read_text()
    for word in ("Apache-2.0", "DeiT-Tiny", "photos", "top-1", "spit retrofit", "H200"):
        assert word in card
    assert file(f"{name}/model-*.safetensors").name in (registry.CHECKPOINTS / name / "config.json").read_text()


@pytest.mark.parametrize("make", [spit.load, spit.load_model, lambda name: spit.create_model(name, pretrained=True)])
def test_without_the_second_distribution_its_models_say_how_to_get_them(make, monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda package: None)
    monkeypatch.setattr(registry, "CLONE", Path("nowhere"))
    assert spit.list_models(pretrained=True) == ["spit_tiny_16.deit_retrofit"]
    with pytest.raises(spit.MissingExtra, match=r"pip install 'spit-vit\[models\]'"):
        make("rvit_tiny_16")
    assert spit.create_model("rvit_tiny_16").config.position_sigma  # its config is there


def test_every_name_with_weights_is_tested() -> None:
    assert sorted(spit.list_models(pretrained=True)) == sorted(NAMES)


def test_it_loads_offline_and_sees_a_cat(name: str) -> None:
    model = spit.create_model(name, pretrained=True)
    assert (model.config.num_classes, model.config.gradients) == (1000, True)
    image = central_square(torch.from_numpy(data.chelsea()).permute(2, 0, 1), 224)
    with torch.inference_mode():
        guesses = model(image[None]).softmax(1)[0].topk(5).indices.tolist()
    assert CATS & {imagenet_classes()[guess] for guess in guesses}


def test_prototypes_are_found_by_weights_and_by_name(name: str) -> None:
    found = find_prototypes(spit.create_model(name, pretrained=True))
    assert found.values.shape == (1000, 5, 192)
    assert found.about == load_prototypes(name).about


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
