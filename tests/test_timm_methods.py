"""timm's interface; with timm itself where it can be imported."""

import re
from collections import defaultdict
from itertools import chain

import pytest
import torch
from PIL import Image

from spit.config import ModelConfig
from spit.model import SpitModel
from spit.parts import register_backbone

CONFIG = ModelConfig(tokenizer="patch", tokenizer_options={"size": 8}, resolution=4, position_bins=4, gradients=False,
                     width=16, depth=3, heads=2, num_classes=5, class_names=("a", "b", "c", "d", "e"), eval_size=96,
                     eval_crop=0.9)
IMAGES = torch.randint(0, 256, (2, 3, 32, 24), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


class Plain(torch.nn.Module):
    """A backbone without blocks."""

    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, tokens, recorder=None):
        return tokens.replace(self.linear(tokens.values))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return SpitModel(CONFIG).eval()


@pytest.fixture
def plain(restored_parts):
    register_backbone("plain", Plain)
    return SpitModel(CONFIG.replace(backbone="plain"))


@pytest.fixture
def timm():
    try:
        import timm
        import timm.data
        import timm.optim
    except Exception as error:  # torchvision, which timm needs, fails with a RuntimeError beside another torch
        pytest.skip(f"timm cannot be imported: {error}")
    return timm


def layers_of(model, matcher):
    """What timm's ``group_parameters(model, matcher, reverse=True)`` returns: the layer of each parameter."""
    patterns = []
    for ordinal, spec in enumerate(matcher.values()):
        for pattern, suffix in [(spec, None)] if isinstance(spec, str) else spec:
            patterns.append((re.compile(pattern), (ordinal,), suffix))

    def group_of(name):
        for pattern, prefix, suffix in patterns:
            if match := pattern.match(name):
                return tuple(map(float, chain.from_iterable(filter(None, (prefix, match.groups(), suffix)))))
        return (float("inf"),)

    groups = defaultdict(list)
    for name, _ in model.named_parameters():
        groups[group_of(name)].append(name)
    layers, layer = {}, -1
    for key in sorted(groups):
        layer += layer < 0 or key[-1] != 99999
        layers |= dict.fromkeys(groups[key], layer)
    return layers


def expected_layer(name):
    if name.startswith("head."):
        return 4
    block = re.match(r"backbone\.blocks\.(\d)", name)
    return 1 + int(block[1]) if block else 3 if name.startswith("backbone.norm") else 0


def test_sizes(model):
    assert (model.num_features, model.embed_dim, model.num_classes) == (16, 16, 5)
    assert model.feature_info == [{"module": f"backbone.blocks.{i}", "num_chs": 16, "reduction": 1} for i in range(3)]
    for info in model.feature_info:
        model.get_submodule(info["module"])


def test_preprocessing(model):
    described = model.pretrained_cfg
    assert described == model.default_cfg
    assert (described["input_size"], described["crop_pct"], described["num_classes"]) == ((3, 96, 96), 0.9, 5)
    assert (described["mean"], described["std"], described["interpolation"]) == ((0,) * 3, (1,) * 3, "bicubic")
    assert isinstance(model.get_submodule(described["classifier"]), torch.nn.Linear)
    assert SpitModel(CONFIG.replace(eval_size=None)).pretrained_cfg["input_size"] == (3, 224, 224)
    assert described["crop_mode"] == "center"
    whole = SpitModel(CONFIG.replace(eval_crop=None)).pretrained_cfg
    assert (whole["crop_pct"], whole["crop_mode"]) == (1.0, "squash")  # timm's words for a whole image


def test_forward_is_features_and_head(model):
    tokens = model.forward_features(IMAGES)
    assert tokens.counts.tolist() == [13, 13]
    assert torch.equal(model.forward_head(tokens), model(IMAGES))
    assert torch.equal(model.forward_head(tokens, pre_logits=True), model.embed(IMAGES))
    assert torch.equal(tokens.split()[1][0], model.embed(IMAGES)[1])


def test_features_keep_to_the_budget_in_training(model):
    model.config = model.config.replace(token_budget=4)
    assert model.train().forward_features(IMAGES).counts.tolist() == [5, 5]


def test_classifier(model):
    assert model.get_classifier() is model.head.linear
    model.double().train().reset_classifier(7)
    assert (model.num_classes, model.config.class_names, model.get_classifier().out_features) == (7, (), 7)
    assert model.head.linear.weight.dtype == torch.float64
    assert model.head.training
    model.reset_classifier(0)
    assert isinstance(model.get_classifier(), torch.nn.Identity)
    assert model(IMAGES).shape == (2, 16)
    with pytest.raises(ValueError, match="num_classes of at least 0"):
        model.reset_classifier(-1)


def test_layers_for_layer_decay(model):
    layers = layers_of(model, model.group_matcher())
    assert layers == {name: expected_layer(name) for name, _ in model.named_parameters()}
    assert sorted(set(layers_of(model, model.group_matcher(coarse=True)).values())) == [0, 1, 2]


def test_layer_decay_of_timm(model, timm):
    names = {parameter: name for name, parameter in model.named_parameters()}
    groups = timm.optim.param_groups_layer_decay(model, weight_decay=0.05, layer_decay=0.75,
                                                 no_weight_decay_list=model.no_weight_decay())
    scales = {names[parameter]: group["lr_scale"] for group in groups for parameter in group["params"]}
    assert scales == {name: 0.75 ** (4 - expected_layer(name)) for name in names.values()}
    decayed = {names[parameter] for group in groups if group["weight_decay"] for parameter in group["params"]}
    assert decayed == {name for parameter, name in names.items() if parameter.ndim > 1}


def test_preprocessing_of_timm(model, timm):
    config = timm.data.resolve_model_data_config(model)
    assert (config["input_size"], config["crop_pct"], config["mean"]) == ((3, 96, 96), 0.9, (0.0, 0.0, 0.0))
    photo = torch.randint(0, 256, (50, 70, 3), dtype=torch.uint8).numpy()
    image = timm.data.create_transform(**config)(Image.fromarray(photo))
    assert model(image).shape == (1, 5)


def test_no_weight_decay(model):
    parameters = dict(model.named_parameters())
    assert model.no_weight_decay() == {"embedder.class_token"} <= parameters.keys()


def test_checkpointing(model):
    model.set_grad_checkpointing()
    assert model.backbone.checkpointing
    model.set_grad_checkpointing(False)
    assert not model.backbone.checkpointing


def test_intermediate_layers(model):
    recorded = model(IMAGES, record=("features",))
    [last] = model.get_intermediate_layers(IMAGES)
    assert torch.equal(last.values, recorded.tokens.values)
    first, class_token = model.get_intermediate_layers(IMAGES, n=[0], norm=False, return_class_token=True)[0]
    assert torch.equal(class_token, recorded.features[0].values[recorded.features[0].offsets[:-1]])
    assert torch.equal(first.values[:12], recorded.features[0].values[1:13])
    two = model.get_intermediate_layers(IMAGES, n=2)
    by_index = model.get_intermediate_layers(IMAGES, n=(1, -1))
    assert [torch.equal(a.values, b.values) for a, b in zip(two, by_index, strict=True)] == [True, True]


def test_intermediate_layers_as_maps(model):
    tokens, maps = (model.get_intermediate_layers(IMAGES, reshape=reshape)[0] for reshape in (False, True))
    assert maps.shape == (2, 16, 32, 24)
    assert torch.equal(maps[1, :, 31, 23], tokens.split()[1][-1])
    sizes = model.get_intermediate_layers([IMAGES[0], IMAGES[1, :, :16]], reshape=True)[0]
    assert [one.shape for one in sizes] == [(16, 32, 24), (16, 16, 24)]


def test_intermediate_layers_keep_every_token_in_training(model):
    model.config = model.config.replace(token_budget=4)
    assert model.train().get_intermediate_layers(IMAGES, reshape=True)[0].shape == (2, 16, 32, 24)


@pytest.mark.parametrize(("n", "message"), [(0, "n of 1 to 3"), (4, "n of 1 to 3"), ([3], "from -3 to 2, got 3")])
def test_layers_that_are_not_there(model, n, message):
    with pytest.raises(ValueError, match=message):
        model.get_intermediate_layers(IMAGES, n)


def test_a_backbone_without_blocks_says_so(plain):
    assert plain.forward_head(plain.forward_features(IMAGES)).shape == (2, 5)
    assert plain.num_features == 16
    assert set(layers_of(plain, plain.group_matcher(coarse=True)).values()) == {0, 1, 2}
    for call in (plain.group_matcher, lambda: plain.get_intermediate_layers(IMAGES), lambda: plain.feature_info):
        with pytest.raises(TypeError, match="backbone 'plain' has no blocks"):
            call()
    with pytest.raises(TypeError, match="backbone 'plain' has no attribute checkpointing"):
        plain.set_grad_checkpointing()
