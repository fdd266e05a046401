import copy
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

import spit
from spit.config import ModelConfig
from spit.features import FeatureExtractor
from spit.model import Output, SpitModel
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, VoronoiTokenizer

CONFIG = ModelConfig(tokenizer_options={"levels": 2}, resolution=4, position_bins=4, gradient_bins=4, width=16,
                     depth=3, heads=2, layer_scale=None, num_classes=5)


def tiny(**changes):
    torch.manual_seed(0)
    model = SpitModel(CONFIG.replace(**changes)).eval()
    for parameter in model.parameters():  # larger than at the start, so that a leak would show in the logits
        if parameter.ndim == 2:
            torch.nn.init.normal_(parameter, std=0.2)
    return model


def image(height=32, width=32, seed=0, channels=3):
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(1, channels, 4, 4, generator=generator)
    picture = torch.nn.functional.interpolate(coarse, (height, width), mode="bilinear")[0]
    return (picture + 0.2 * torch.rand(picture.shape, generator=generator)).clamp(0, 1).mul(255).to(torch.uint8)


def batch(size=3):
    return torch.stack([image(seed=seed) for seed in range(size)])


@pytest.mark.parametrize("tokenizer", ["patch", "voronoi", "superpixel"])
def test_logits_of_every_tokenizer(tokenizer):
    logits = tiny(tokenizer=tokenizer, tokenizer_options={})(batch())
    assert logits.shape == (3, 5)
    assert logits.isfinite().all()
    assert logits.std(0).min() > 0


def test_floats_and_bytes_agree():
    model = tiny()
    torch.testing.assert_close(model(batch()), model(batch() / 255), atol=1e-5, rtol=0)


def test_images_of_different_sizes():
    model, images = tiny(), [image(32, 32), image(20, 50, seed=1), image(32, 32, seed=2), image(1, 1)]
    logits = model(images)
    for one, row in zip(images, logits, strict=True):
        torch.testing.assert_close(model(one)[0], row, atol=1e-5, rtol=0)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_batches_of_any_composition(seeds):
    model = tiny()
    alone = torch.cat([model(image(seed=seed)) for seed in seeds])
    together = model(torch.stack([image(seed=seed) for seed in seeds]))
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


def test_no_leak_between_images():
    model, images = tiny(), batch(4)
    before = model(images)
    images[1] = image(seed=77)
    after = model(images)
    others = [0, 2, 3]
    torch.testing.assert_close(after[others], before[others], atol=1e-6, rtol=0)
    assert (after[1] - before[1]).abs().max() > 1e-3


@pytest.mark.parametrize("floating", [False, True])
def test_inputs_are_never_modified(floating):
    images = batch(1) / 255 if floating else batch(1)
    copy = images.clone()
    tiny()(images, record=("attention", "features"))
    assert torch.equal(images, copy)


@pytest.mark.parametrize("record", [
    (), ("attention",), ("attention", "features"), {"attention": (-1,)}, {"features": (0, -1)},
])
def test_record_never_changes_the_logits(record):
    model = tiny()
    for images in (batch(), [image(), image(20, 50)]):
        assert torch.equal(model(images, record=record).logits, model(images))


def test_output():
    model = tiny()
    output = model([image(), image(20, 50)], record=("attention", "features"))
    counts = output.partition.counts.tolist()
    assert isinstance(output, Output)
    assert output.kept is None
    assert output.class_token.shape == (2, 16)
    assert list(output.attention) == list(output.features) == [0, 1, 2]
    for maps, count in zip(output.attention[2], counts, strict=True):
        assert maps.shape == (2, count + 1, count + 1)
    assert output.features[0].counts.tolist() == [count + 1 for count in counts]
    assert torch.equal(output.tokens.offsets, output.partition.offsets)
    assert [dense.shape for dense in output.partition.paint(output.tokens.values)] == [(32, 32, 16), (20, 50, 16)]
    normed = model.backbone.norm(output.features[2].values)
    assert torch.equal(normed[output.features[2].offsets[:-1]], output.class_token)
    assert torch.equal(normed[1 : 1 + counts[0]], output.tokens.split()[0])
    assert torch.equal(model.head(output.class_token), output.logits)
    assert torch.equal(model.embed([image(), image(20, 50)]), output.class_token)


def test_repr_of_an_output_is_short():
    model = tiny(tokenizer="patch", tokenizer_options={"size": 8}, token_budget=5)
    output = model(batch(2), record={"attention": (-1,)})
    assert repr(output) == (
        "Output(logits (2, 5), class_token (2, 16), tokens (32, 16), kept all, attention of layers [2], "
        "features of layers [], Partition(2 images of 32×32, regions [16, 16]))")
    assert "kept 10 of 32" in repr(model.train()(batch(2), record=()))


def test_tokens_of_a_training_pass_cannot_be_painted_and_the_error_says_why():
    model = tiny(tokenizer="patch", tokenizer_options={"size": 8}, token_budget=5).train()
    output = model(batch(2), record=())
    with pytest.raises(ValueError, match=r"out\.kept"):
        output.partition.paint(output.tokens.values)
    values = output.tokens.values.new_zeros(len(output.kept), 16)
    values[output.kept] = output.tokens.values
    assert output.partition.paint(values).shape == (2, 32, 32, 16)


@pytest.mark.parametrize("normalization", ["contrast", "imagenet"])
def test_floats_that_stray_by_rounding_give_the_logits_of_the_ends(normalization):
    model = tiny(normalization=normalization)
    images = (batch(2) > 100).float()
    stray = torch.where(images == 1, 1 + 2.4e-7, -1e-7).requires_grad_()
    logits = model(stray)
    torch.testing.assert_close(logits, model(images), atol=1e-4, rtol=0)
    logits.sum().backward()
    assert stray.grad.isfinite().all()


def test_record_of_what_is_not_there():
    with pytest.raises(ValueError, match="did you mean 'attention'"):
        tiny()(batch(), record=("attentions",))


def test_no_classes_gives_the_class_token():
    model = tiny(num_classes=0)
    assert torch.equal(model(batch()), model.embed(batch()))


@pytest.mark.parametrize("channels", [1, 5])
def test_any_number_of_channels(channels):
    model = tiny(tokenizer="patch", tokenizer_options={"size": 8}, channels=channels, normalization="none")
    assert model(image(channels=channels)).shape == (1, 5)


@pytest.mark.parametrize(("images", "error", "message"), [
    (torch.rand(1, 1, 8, 8), ValueError, "3 channels, got shape .1, 1, 8, 8.; .*channels=1"),
    (torch.rand(1, 1, 8, 8), ValueError, r"images\.expand\(-1, 3, -1, -1\)"),
    (torch.rand(1, 8, 8), ValueError, r"image\.expand\(3, -1, -1\)"),
    ([torch.rand(1, 8, 8)], ValueError, r"image\.expand\(3, -1, -1\)"),
    (torch.rand(1, 4, 8, 8), ValueError, "; convert them, or make a model with channels=4"),
    (torch.full((1, 3, 8, 8), 2.0), ValueError, r"\[0, 1\]"),
    (torch.full((1, 3, 8, 8), torch.nan), ValueError, r"\[0, 1\]"),
    ("photo.jpg", TypeError, "load_image"),
    ([], ValueError, "at least one image"),
    (torch.zeros(1, 3, 8, 8, device="meta", dtype=torch.uint8), ValueError, "expected images on cpu"),
])
def test_wrong_images(images, error, message):
    with pytest.raises(error, match=message):
        tiny()(images)


def test_budget_is_for_training_only():
    model, images = tiny(tokenizer="patch", tokenizer_options={"size": 4}, token_budget=10), batch(2)
    output = model(images, record=())
    assert output.kept is None
    assert output.tokens.counts.tolist() == [64, 64]
    assert torch.equal(model(images), output.logits)
    model.train()
    torch.manual_seed(0)
    output = model(images, record={"features": (0,)})
    assert output.tokens.counts.tolist() == [10, 10]
    assert output.features[0].counts.tolist() == [11, 11]
    assert output.kept.view(2, 64).sum(1).tolist() == [10, 10]
    assert not torch.equal(model(images), output.logits)
    torch.manual_seed(0)
    assert torch.equal(model(images), output.logits)


def test_with_tokenizer_shares_the_parameters_and_nothing_else():
    model = tiny()
    before = model(batch())
    other = model.with_tokenizer("patch")
    assert [id(parameter) for parameter in other.parameters()] == [id(parameter) for parameter in model.parameters()]
    assert other.config.tokenizer == "patch"
    assert model.config.tokenizer == "superpixel"
    assert other.with_tokenizer("superpixel").tokenizer.config() == type(model.tokenizer)().config()
    other.train()
    assert not model.backbone.blocks[0].training
    assert other.backbone.blocks[0].training
    assert torch.equal(model(batch()), before)
    other.eval()
    assert not torch.equal(other(batch()), before)
    with torch.no_grad():
        other.head.linear.bias += 1
    torch.testing.assert_close(model(batch()), before + 1)


def test_with_tokenizer_takes_objects_and_keeps_present_options():
    model = tiny()
    assert model.with_tokenizer("superpixel").tokenizer.config() == model.tokenizer.config()
    patches = model.with_tokenizer(PatchTokenizer(8))
    assert (patches.config.tokenizer, patches.config.tokenizer_options) == ("patch", {"size": 8})
    assert patches(batch(1), record=()).tokens.counts.tolist() == [16]

    def halves(images):
        return PatchTokenizer(16)(images)

    assert model.with_tokenizer(halves)(batch(1), record=()).tokens.counts.tolist() == [4]


def test_with_backbone_shares_the_parameters():
    model = spit.create_model("spit_tiny_16", depth=2, num_classes=3).eval()
    other = model.with_backbone("merging", share=0.75)
    assert all(one is own for one, own in zip(other.parameters(), model.parameters(), strict=True))
    assert (other.config.backbone, dict(other.config.backbone_options)) == ("merging", {"share": 0.75})
    assert not other.backbone.training
    assert (model.config.backbone, type(model.backbone).__name__) == ("transformer", "Transformer")
    back = other.with_backbone("transformer")
    with torch.no_grad():
        assert torch.equal(back(batch(1)), model(batch(1)))


def test_another_backbone_and_masks_leave_frozen_parameters_frozen():
    model = tiny().requires_grad_(False)
    model.head.requires_grad_(True)
    spit.segment(model, batch())
    assert {name for name, own in model.named_parameters() if own.requires_grad} == {"head.linear.weight",
                                                                                     "head.linear.bias"}


@pytest.mark.usefixtures("restored_parts")
def test_with_backbone_refuses_other_parameters():
    class Nothing(nn.Module):
        def __init__(self, width):
            super().__init__()

        def forward(self, tokens, recorder=None):
            return tokens

    spit.register_backbone("nothing", Nothing)
    with pytest.raises(ValueError, match="with the parameters of 'transformer', got 'nothing' with others"):
        spit.create_model("spit_tiny_16", depth=1).with_backbone("nothing")


@pytest.mark.parametrize("options", [{"shares": 1}, {"options": 1}])
def test_with_backbone_names_its_options(options):
    with pytest.raises(ValueError, match="unknown option of backbone 'merging'") as refused:
        spit.create_model("spit_tiny_16", depth=1).with_backbone("merging", **options)
    assert "did you mean 'options'" not in str(refused.value)


def test_with_tokenizer_takes_options_of_a_name():
    model = tiny()
    cells = model.with_tokenizer("voronoi", cells=9)
    assert cells.config.tokenizer_options == {"cells": 9, "seed": 0}
    assert cells(batch(1), record=()).tokens.counts.tolist() == [9]
    few = model.with_tokenizer("superpixel", max_tokens=7).tokenizer
    assert (few.levels, few.max_tokens) == (2, 7)  # the present options, and the new one
    assert model.with_tokenizer("superpixel", levels=1).tokenizer.levels == 1
    with pytest.raises(ValueError, match="option of tokenizer 'voronoi': 'cell'; did you mean 'cells'"):
        model.with_tokenizer("voronoi", cell=9)
    with pytest.raises(TypeError, match=r"options go with the name.*got size beside"):
        model.with_tokenizer(PatchTokenizer(8), size=4)


def test_with_tokenizer_refuses_what_is_none():
    with pytest.raises(TypeError, match="got 16"):
        tiny().with_tokenizer(16)
    with pytest.raises(ValueError, match="superpixel"):
        tiny().with_tokenizer("superpixels")


def test_every_parameter_learns():
    model = tiny(layer_scale=0.1).train()
    model(batch()).square().sum().backward()
    idle = [name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()]
    assert idle == []


@pytest.mark.filterwarnings("ignore:TF32 acceleration")
def test_bfloat16_and_autocast():
    model = tiny()
    expected = model(batch())
    with torch.backends.mkldnn.flags(enabled=False):  # oneDNN's half kernels need AMX rights that sandboxes withhold
        with torch.autocast("cpu", torch.bfloat16):
            torch.testing.assert_close(model(batch()).float(), expected, atol=0.1, rtol=0.1)
        torch.testing.assert_close(model.bfloat16()(batch()).float(), expected, atol=0.1, rtol=0.1)


@pytest.fixture
def counter():
    """A compiler that counts what it compiles."""
    torch._dynamo.reset()
    yield CompileCounterWithBackend("aot_eager")
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # torch's own tracing asks for it, and hides it
class TestCompile:
    def test_same_logits_without_a_compilation_for_each_batch(self, counter):
        model = tiny()
        batches = [torch.stack([image(24, 20, seed=seed + 3 * index) for seed in range(3)]) for index in range(5)]
        expected = [model(images) for images in batches]
        model.compile(backend=counter)
        with torch.no_grad():
            for index, (images, logits) in enumerate(zip(batches, expected, strict=True)):
                torch.testing.assert_close(model(images), logits, atol=1e-5, rtol=0)
                assert 1 <= counter.frame_count <= min(index + 1, 2)

    def test_record_leaves_the_logits_as_they_are(self, counter):
        model = tiny()
        attention = model(batch(), record=("attention",)).attention
        model.compile(backend=counter)
        with torch.no_grad():
            logits = model(batch())
            output = model(batch(), record=("attention", "features"))
        assert counter.frame_count == 1
        assert torch.equal(output.logits, logits)
        assert list(output.features) == [0, 1, 2]
        for layer, maps in attention.items():
            for got, expected in zip(output.attention[layer], maps, strict=True):
                torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)

    def test_record_leaves_the_logits_as_they_are_in_training(self, counter):
        model = tiny(drop_path=0.5).train()
        model.compile(backend=counter)
        torch.manual_seed(0)
        logits = model(batch())
        torch.manual_seed(0)
        assert torch.equal(model(batch(), record=("features",)).logits, logits)

    def test_same_gradients_in_training(self, counter):
        model = tiny(layer_scale=0.1).train()
        gradients = []
        for compiled in (False, True):
            if compiled:
                model.compile(backend=counter)
            model.zero_grad()
            model(batch()).square().sum().backward()
            gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})
        assert counter.frame_count == 1
        for name, expected in gradients[0].items():
            torch.testing.assert_close(gradients[1][name], expected, atol=1e-4, rtol=1e-4, msg=name)

    @pytest.mark.parametrize("make", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
    def test_a_copy_runs_its_own_weights(self, counter, make):
        """And none of those of the model that was compiled."""
        model = tiny()
        before = model(batch())
        model.compile(backend=counter)
        other = make(model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        assert torch.equal(other(batch()), before)
        assert torch.equal(model(batch()), torch.zeros_like(before))

    def test_with_tokenizer_gives_a_model_that_is_not_compiled(self, counter):
        model = tiny()
        expected = model.with_tokenizer("patch")(batch())
        model.compile(backend=counter)
        other = model.with_tokenizer("patch")
        assert other.compiled is None
        assert model.compiled is not None
        assert torch.equal(other(batch()), expected)
        assert counter.frame_count == 0
        model(batch())
        assert counter.frame_count == 1

    def test_weights_are_saved_as_if_it_were_not_compiled(self, counter):
        model = tiny()
        names = list(model.state_dict())
        model.compile(backend=counter)
        model(batch())
        assert list(model.state_dict()) == names


def test_checkpointing_changes_no_gradient():
    model = tiny(layer_scale=0.1, drop_path=0.5).train()
    gradients = []
    for checkpointing in (False, True):
        model.backbone.checkpointing = checkpointing
        model.zero_grad()
        torch.manual_seed(3)
        model(batch()).square().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    for got, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("tokenizer", [
    SuperpixelTokenizer(levels=3, compactness=0.1, merge_threshold=0.05, max_tokens=20),
    SuperpixelTokenizer(levels=2, features="saturated", similarity="euclidean"),
    VoronoiTokenizer(9),
    PatchTokenizer(12),
], ids=str)
def test_autocast_leaves_tokens_exact(tokenizer, floating):
    """bf16 has 8 bits: a partition or a histogram made in it would be another one."""
    images = batch(2) / 255 if floating else batch(2)
    extractors = [FeatureExtractor(normalization=name) for name in ("contrast", "imagenet")]
    partition = tokenizer(images)
    expected = [extractor(images, partition).values for extractor in extractors]
    with torch.autocast("cpu", torch.bfloat16):
        got = tokenizer(images)
        features = [extractor(images, got).values for extractor in extractors]
    assert torch.equal(got.labels, partition.labels)
    assert torch.equal(got.counts, partition.counts)
    for values, right in zip(features, expected, strict=True):
        assert values.dtype == torch.float32
        assert torch.equal(values, right)
