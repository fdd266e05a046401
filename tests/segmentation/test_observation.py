import torch

from spit.segmentation.cut import Cut
from spit.segmentation.observation import maps_of, observe, resize


def test_final_tokens_and_class_token_are_the_model_s(model, scene) -> None:
    image = scene()
    output = model(image[None], record=())
    seen = observe(model, [image], Cut())
    assert torch.equal(seen.compared.values, output.tokens.values)
    assert torch.equal(seen.class_token, output.class_token)


def test_keys_are_those_of_the_layer(model, scene) -> None:
    image = scene()
    output = model(image[None], record={"features": (1,)})
    block = model.backbone.blocks[2]
    rows = block.attention.qkv(block.norm1(output.features[1].values))
    width = model.config.width
    seen = observe(model, [image], Cut(features="keys"))
    torch.testing.assert_close(seen.compared.values, rows[1:, width : 2 * width])
    assert torch.equal(seen.compared.offsets, seen.tokens.offsets)


def test_earlier_layers_pass_the_final_norm(model, scene) -> None:
    image = scene()
    output = model(image[None], record={"features": (0,)})
    seen = observe(model, [image], Cut(layer=0))
    torch.testing.assert_close(seen.compared.values, model.backbone.norm(output.features[0].values)[1:])


def test_sizes(model, scene) -> None:
    image = scene(30, 60)
    assert resize(image, 15).shape == (3, 15, 30)
    assert resize(image, 30) is image
    seen = observe(model, [image, scene(40, 32)], Cut(size=20))
    assert [tuple(one.shape) for one in seen.images] == [(3, 20, 40), (3, 25, 20)]


def test_the_nearest_pixel_comes_back(model, scene) -> None:
    image = scene(30, 60)
    seen = observe(model, [image], Cut(size=10))
    values = torch.arange(float(len(seen.tokens.values)))
    [painted] = maps_of(seen.partition, values, [image])
    assert painted.shape == (30, 60)
    assert torch.equal(painted[1::3, 1::3], seen.partition.paint(values)[0])
    assert torch.equal(painted[0::3, 2::3], painted[1::3, 1::3])
