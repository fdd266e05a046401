"""Your own τ, φ and f: registered, checked, trained, saved, loaded and swapped."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import spit
from spit.config import ModelConfig
from spit.images import to_float
from spit.model import SpitModel
from spit.options import option
from spit.parts import TOKENIZERS, register_backbone, register_features, register_tokenizer

pytestmark = pytest.mark.usefixtures("restored_parts")
SMALL = ModelConfig(tokenizer="patch", tokenizer_options={"size": 8}, resolution=2, position_bins=2, gradients=False,
                    width=8, depth=2, heads=2, layer_scale=None, num_classes=2)
IMAGES = torch.randint(0, 256, (2, 3, 16, 24), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


@dataclass(frozen=True)
class Rows(spit.Tokenizer):
    height: int = option(4, "Height of a row", least=1)

    def partition(self, block):
        rows = torch.arange(block.shape[2], device=block.device)[:, None] // self.height
        return spit.Partition.from_labels(rows.expand(len(block), *block.shape[2:]))


class MeanColor(torch.nn.Module):
    """The mean colour of a region, each channel with a weight to learn."""

    def __init__(self, channels, power=1):
        super().__init__()
        self.width = channels * power
        self.weight = torch.nn.Parameter(torch.ones(channels))
        self.power = power

    def forward(self, images, partition):
        sizes = partition.sizes()
        rows = torch.cat([image.flatten() for image in partition.paint(torch.arange(len(sizes)))])
        colors = torch.cat([image.flatten(1).T for block in images for image in to_float(block)])
        mean = torch.zeros(len(sizes), len(self.weight)).index_add(0, rows, colors) / sizes[:, None] * self.weight
        return spit.Tokens(torch.cat([mean**k for k in range(1, self.power + 1)], 1), partition.offsets)


class Mixer(torch.nn.Module):
    """Each token sees the mean of its image."""

    def __init__(self, width, depth, drop_path=0.0, hidden=4):
        super().__init__()
        self.given = (width, depth, drop_path)
        self.layers = torch.nn.ModuleList(torch.nn.Sequential(
            torch.nn.Linear(width, hidden), torch.nn.GELU(), torch.nn.Linear(hidden, width)) for _ in range(depth))

    def forward(self, tokens, recorder=None):
        values = tokens.values
        for layer in self.layers:
            mean = torch.stack([rows.mean(0) for rows in tokens.replace(values)])
            values = values + layer(values + mean[tokens.image_of])
        return tokens.replace(values)


@pytest.fixture
def own() -> ModelConfig:
    register_tokenizer("rows", Rows)
    register_features("mean_color", MeanColor)
    register_backbone("mixer", Mixer)
    return SMALL.replace(tokenizer="rows", tokenizer_options={"height": 2}, extractor="mean_color",
                         extractor_options={"power": 2}, backbone="mixer", backbone_options={"hidden": 5})


def test_a_model_of_ones_own_parts(own):
    model = SpitModel(own.replace(drop_path=0.25))
    out = model([IMAGES[0], IMAGES[1, :, :8]], record=())
    assert out.partition.counts.tolist() == [8, 4]
    assert (model.extractor.width, model.embedder.projection.in_features) == (6, 6)
    assert model.backbone.given == (8, 2, 0.25)  # fields of the config that the constructor names
    assert model.backbone.layers[0][0].out_features == 5
    out.logits.sum().backward()
    assert model.extractor.weight.grad.any()


def test_by_name_in_create_model_and_with_tokenizer(own):
    model = spit.create_model("spit_tiny_16", extractor="mean_color", backbone="mixer", num_classes=3, depth=2)
    assert model(IMAGES).shape == (2, 3)
    rows = spit.create_model("vit_tiny_16", num_classes=3).with_tokenizer("rows", height=4)
    assert rows(IMAGES, record=()).partition.counts.tolist() == [4, 4]
    assert (rows.config.tokenizer, rows.config.tokenizer_options) == ("rows", {"height": 4})
    assert rows.with_tokenizer(Rows(8)).config.tokenizer_options == {"height": 8}
    with pytest.raises(ValueError, match="expected height of at least 1, got 0"):
        rows.with_tokenizer("rows", height=0)
    with pytest.raises(ValueError, match="option of features 'mean_color': 'powr'; did you mean 'power'"):
        spit.create_model("vit_tiny_16", extractor="mean_color", extractor_options={"powr": 2})


def test_it_trains_saves_and_loads_with_spit_training(own, tmp_path: Path, one_thread: None):
    from spit.training.distributed import Team
    from spit.training.recipe import Recipe
    from spit.training.train import train

    random = np.random.default_rng(0)
    for label in ("dark", "light"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for index in range(6):
            pixels = random.integers(0, 100, (40, 36, 3)) + (150 if label == "light" else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "photos" / label / f"{index}.png")
    (tmp_path / "recipe.toml").write_text(f"""
[model]
name = "spit_tiny_16"
[model.options]
width = 8
depth = 2
heads = 2
tokenizer = "rows"
tokenizer_options = {{ height = 2 }}
extractor = "mean_color"
extractor_options = {{ power = 2 }}
backbone = "mixer"
token_budget = 7
[data]
train = ["{tmp_path}/photos"]
validation = ["{tmp_path}/photos"]
side = 36
size = 32
workers = 0
[optimization]
epochs = 2
batch = 4
lr = 1e-2
warmup = 0
""")
    result = train(Recipe.read(tmp_path / "recipe.toml"), tmp_path / "run", Team.join())
    model = spit.load_model(result["model"])
    assert (model.config.tokenizer, model.config.extractor, model.config.backbone) == ("rows", "mean_color", "mixer")
    assert not torch.equal(model.extractor.weight, torch.ones(3))
    loaded = spit.load_model(spit.save_model(model, tmp_path / "again"))
    assert torch.equal(loaded(IMAGES), model(IMAGES))


@dataclass(frozen=True)
class Corners(Rows):
    corner: tuple[int, int] = (0, 0)
    sides: tuple[int, ...] = option((1,), "Sides", least=1)


def test_plain_fields_and_tuples_are_checked_and_saved(tmp_path: Path):
    register_tokenizer("corners", Corners)
    with pytest.raises(TypeError, match="expected corner to be tuple of 2 int, got 'a'"):
        Corners(corner="a")
    model = SpitModel(SMALL.replace(tokenizer="corners", tokenizer_options={"corner": (1, 2), "sides": (3, 4)}))
    loaded = spit.load_model(spit.save_model(model, tmp_path / "model"))  # JSON has lists
    assert loaded.tokenizer == model.tokenizer == Corners(corner=(1, 2), sides=(3, 4))


def test_a_view_shares_the_tokenizer_and_the_parameters(own):
    model = SpitModel(own)
    other = model.view()
    assert other.tokenizer is model.tokenizer
    assert other.extractor.weight is model.extractor.weight


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # torch's own tracing asks for it
def test_compile_takes_any_backbone(own):
    model = SpitModel(own).eval()
    expected = model(IMAGES)
    assert not model.compiled
    model.compile(backend="eager")
    assert model.compiled
    assert not model.view().compiled
    torch.testing.assert_close(model(IMAGES), expected)
    torch._dynamo.reset()


class Undecorated(spit.Tokenizer):
    height: int = 3

    def partition(self, block):
        return spit.PatchTokenizer(self.height).partition(block)


class Abstract(spit.Tokenizer):
    pass


class NoModule:
    def __init__(self, width): ...
    def forward(self, tokens, recorder=None): ...


class NoWidth(torch.nn.Module):
    def forward(self, tokens, recorder=None): ...


@pytest.mark.parametrize(("register", "cls", "message"), [
    (register_tokenizer, Rows(3), "expected a class to register as tokenizer 'mine', got Rows"),
    (register_tokenizer, MeanColor, "derives from spit.Tokenizer, .*partition.*; got MeanColor"),
    (register_tokenizer, Abstract, r"has partition\(self, block\).*; got Abstract"),
    (register_tokenizer, Undecorated, r"decorated with @dataclass\(frozen=True\).*; got Undecorated"),
    (register_features, int, "got int"),
    (register_backbone, NoModule, "torch.nn.Module .*; got NoModule"),
    (register_backbone, NoWidth, "constructor takes width.*; got NoWidth"),
])
def test_what_is_no_such_part_is_refused_when_it_is_registered(register, cls, message):
    with pytest.raises(TypeError, match=message):
        register("mine", cls)


def test_names():
    assert register_tokenizer("rows", Rows) is Rows
    register_tokenizer("rows", Rows)  # as when its module is imported twice
    with pytest.raises(ValueError, match=r"tokenizer 'rows' is .*Rows already; register yours under another name"):
        register_tokenizer("rows", dataclass(frozen=True)(type("Other", (Rows,), {})))
    with pytest.raises(ValueError, match="tokenizer 'patch' is spit's own; register yours under another name"):
        register_tokenizer("patch", Rows)
    for name in ("my rows", "", 3):
        with pytest.raises(ValueError, match="expected a name of letters"):
            register_tokenizer(name, Rows)
    assert TOKENIZERS.name_of(Rows()) == "rows"
    assert TOKENIZERS.name_of(MeanColor) is None
    assert "rows" in TOKENIZERS


def test_an_unknown_part_says_to_import_its_module():
    with pytest.raises(ValueError, match=r"crops, published.*, got 'mine'; if it is your own, import"):
        SpitModel(SMALL.replace(extractor="mine"))
    with pytest.raises(ValueError, match=r"merging, wrapped.*, got 'mine'; .*--plugin MODULE"):
        SpitModel(SMALL.replace(backbone="mine"))


@pytest.mark.parametrize("width", [None, 0, 2.0, True, "3"])
def test_features_need_a_width(width):
    class Bare:
        def __call__(self, images, partition): ...

    Bare.width = width
    register_features("bare", Bare)
    with pytest.raises(TypeError, match=f"expected features 'bare' to have a width.*, got {width!r}"):
        SpitModel(SMALL.replace(extractor="bare"))


def partitions(answer):
    @dataclass(frozen=True)
    class Wrong(spit.Tokenizer):
        def partition(self, block):
            return answer(block)

    return Wrong()


@pytest.mark.parametrize(("answer", "error", "message"), [
    (lambda block: None, TypeError, "expected a spit.Partition, got NoneType; the tokenizer Wrong returned it"),
    (lambda block: spit.PatchTokenizer(8)(block[:1]), ValueError, "expected the partition of 2 images, got one of 1"),
    (lambda block: spit.PatchTokenizer(8)(block[:, :, :8]), ValueError, "labels of 16×24 for image 0, got 8×24; the"),
])
def test_a_wrong_partition_is_named(answer, error, message):
    with pytest.raises(error, match=message):
        SpitModel(SMALL).with_tokenizer(partitions(answer))(IMAGES)


def tokens_of(offsets, width):
    return spit.Tokens(torch.zeros(int(offsets[-1]), width), offsets)


def test_a_wrong_partition_of_a_function_is_named():
    def thirds(images):
        return [image[:3] for image in images]

    with pytest.raises(TypeError, match=r"expected a spit\.Partition, got list; the tokenizer thirds returned it"):
        SpitModel(SMALL).with_tokenizer(thirds)(IMAGES)


@pytest.mark.parametrize(("answer", "error", "message"), [
    (lambda part: part, TypeError, "expected spit.Tokens, got Partition; the features Wrong returned them"),
    (lambda part: tokens_of(part.offsets, 4), ValueError, r"width 3, got .*shape \(12, 4\); the features Wrong"),
    (lambda part: tokens_of(torch.tensor([0, 6, 11]), 3), ValueError, r"\[6, 6\].*got \[6, 5\] rows"),
    (lambda part: tokens_of(torch.tensor([0, 5, 12]), 3), ValueError, r"\[6, 6\].*got \[5, 7\] rows"),
])
def test_wrong_features_are_named(answer, error, message):
    class Wrong:
        width = 3

        def __call__(self, images, partition):
            return answer(partition)

    register_features("wrong", Wrong)
    with pytest.raises(error, match=message):
        SpitModel(SMALL.replace(extractor="wrong"))(IMAGES)


@pytest.mark.parametrize(("answer", "error", "message"), [
    (lambda tokens: tokens.values, TypeError, "expected spit.Tokens, got Tensor; the backbone Wrong returned them"),
    (lambda tokens: tokens.replace(tokens.values[:, :3]), ValueError, r"width 8, got .*shape \(2, 3\); the backbone"),
    (lambda tokens: tokens.select(tokens.image_of < 0), ValueError, r"expected Tokens of \[2\] rows.*got \[0\] rows"),
])
def test_a_wrong_backbone_is_named_when_it_answers(answer, error, message):
    class Wrong(torch.nn.Module):
        def __init__(self, width):
            super().__init__()

        def forward(self, tokens, recorder=None):
            return answer(tokens)

    register_backbone("wrong", Wrong)
    model = SpitModel(SMALL.replace(backbone="wrong"))
    with pytest.raises(error, match=message):
        model.encode(spit.Tokens(torch.zeros(1, model.extractor.width), torch.tensor([0, 1])))
