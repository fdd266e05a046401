"""spit.load, Predictor and Prediction: sources, images, answers, and how often the model runs."""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image
from torch import Tensor, nn

import spit
from interop.test_timm import vit
from spit import predictor, weights
from spit.attribution import PrototypeProjection, fit_prototypes
from spit.data.crops import central_square
from spit.devices import has_bf16
from spit.errors import ImageError
from spit.kernels.concurrency import torch_threads
from spit.predictor import Prediction, Predictor, at_size, resize
from spit.tokens import Tokens

TINY: dict[str, Any] = {"tokenizer_options": {"levels": 2}, "resolution": 4, "position_bins": 4, "gradients": False,
                        "width": 24, "depth": 3, "heads": 3, "layer_scale": None, "num_classes": 4}


def small(**options: Any) -> spit.SpitModel:
    torch.manual_seed(0)
    return spit.SpitModel(spit.ModelConfig(**{**TINY, **options})).eval()


@pytest.fixture(scope="module")
def model() -> spit.SpitModel:
    return small(class_names=("tabby", "lynx", "espresso", "cup"), eval_size=32)


@pytest.fixture
def images(photo: Callable[[str, int], Tensor]) -> list[Tensor]:
    """Two sizes, uint8."""
    return [photo("coffee", 40), photo("chelsea", 40)[:, :28], photo("astronaut", 40)]


@pytest.fixture
def files(images: list[Tensor], tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{index}.png" for index in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        Image.fromarray(image.movedim(0, -1).numpy()).save(path)
    return paths


def same(first: Any, second: Any) -> bool:
    return len(first) == len(second) and all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


# spit.load: every source, the device


@pytest.mark.parametrize(("source", "name", "size"), [
    ("spit_tiny_16", "spit_tiny_16", 288), ("rvit_tiny_16.deit_retrofit", "rvit_tiny_16.deit_retrofit", 224)])
def test_by_name(source: str, name: str, size: int) -> None:
    found = spit.load(source, device="cpu")
    assert (found.name, found.device.type, found.model.training) == (name, "cpu", False)
    assert found.size == (found.model.config.eval_size or size)
    assert found.class_names[281] == "tabby"
    assert found.digest == weights.digest(spit.create_model(source, pretrained=True))
    assert spit.load(source, device="cpu", size=96).size == 96


def test_a_folder_and_the_hub(model: spit.SpitModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "models--owner--pet" / "snapshots" / "c0ffee"
    spit.save_model(model, folder)
    asked = []

    def download(repo: str, name: str, revision: str | None = None, local_files_only: bool = False) -> str:
        assert not local_files_only
        asked.append((repo, revision))
        return str(folder / name)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(
        hf_hub_download=download, hf_hub_url=lambda repo, name, revision: repo, get_hf_file_metadata=str))
    for source, name in ((folder, "c0ffee"), ("owner/pet", "pet"), ("owner/pet@v1", "pet@v1")):
        found = spit.load(source, device="cpu")
        assert (found.name, found.size, found.digest) == (name, 32, weights.digest(model))
        assert found.class_names == ("tabby", "lynx", "espresso", "cup")
    assert asked == [("owner/pet", None), ("owner/pet", "c0ffee"), ("owner/pet", "v1"), ("owner/pet", "c0ffee")]


@torch.no_grad()
def test_a_file_in_timms_names(tmp_path: Path) -> None:
    safetensors.torch.save_file(vit(), tmp_path / "deit.safetensors")
    found = spit.load(tmp_path / "deit.safetensors", device="cpu")
    assert (found.name, found.size, found.model.config.tokenizer) == ("deit", 224, "patch")
    image = torch.rand(1, 3, 32, 32)
    assert torch.equal(found(image, crop=False).logits, spit.from_timm(vit())(image))


def test_what_is_no_predictor(model: spit.SpitModel) -> None:
    with pytest.raises(TypeError, match="a model of spit, got Linear"):
        Predictor(nn.Linear(3, 3))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"model\.eval\(\)"):
        Predictor(small().train())
    with pytest.raises(ValueError, match="size of 1 to 16,384 pixels, got 0"):
        Predictor(model, size=0)
    found = Predictor(small())
    found.model.train()
    with pytest.raises(ValueError, match=r"model\.eval\(\)"):
        found(torch.rand(3, 16, 16))


# What a predictor sees


@torch.no_grad()
def test_whole_tensors_are_seen_as_they_are(model: spit.SpitModel, images: list[Tensor]) -> None:
    found = Predictor(model)
    before = [image.clone() for image in images]
    expected = torch.cat([model(image[None]) for image in images]).detach()
    for given in (images, tuple(images), [images[0][None], *images[1:]]):
        prediction = found(given, crop=False)
        assert torch.equal(prediction.logits, expected)
        assert same(prediction.images, images)
    assert torch.equal(found(images[0], crop=False).logits, expected[:1])
    assert torch.equal(found(torch.stack([images[0], images[2]]), crop=False).logits, expected[[0, 2]])
    assert torch.equal(found(images[0] / 255, crop=False).logits.argmax(1), expected[:1].argmax(1))
    prediction = found(images, crop=False)
    prediction.explain("relevance")
    prediction.segment(foreground="class_token")
    assert same(images, before)


def test_all_kinds_of_images_are_cropped_by_default(model: spit.SpitModel, images: list[Tensor], files: list[Path]
                                                    ) -> None:
    found = Predictor(model)
    expected = [central_square(image, 32, model.config.eval_crop) for image in images]
    pictures = [Image.open(path) for path in files]
    arrays = [np.array(picture) for picture in pictures]
    for given in (files, [str(path) for path in files], pictures, arrays, images,
                  [files[0], pictures[1], arrays[2]], [images[0], files[1], arrays[2]]):
        assert same(found(given).images, expected)
    for one in (files[1], str(files[1]), pictures[1], arrays[1], images[1], images[1] / 255):
        assert same(found(one).images, expected[1:2])
    assert same(found(images, size=20).images,
                [central_square(image, 20, model.config.eval_crop) for image in images])
    assert found(files).explain().shape == (3, 32, 32)
    for picture in pictures:
        picture.close()


def test_whole_images_have_maps_at_their_own_pixels(model: spit.SpitModel, images: list[Tensor], files: list[Path]
                                                    ) -> None:
    found = Predictor(model)
    assert same(found(files, crop=False).images, images)
    prediction = found(files, crop=False, size=14)
    assert [tuple(image.shape) for image in prediction.images] == [(3, 14, 14), (3, 14, 20), (3, 14, 14)]
    sizes = [(40, 40), (28, 40), (40, 40)]
    for maps in (prediction.explain(), prediction.segment().mask, [one[..., 0] for one in prediction.features()]):
        assert [tuple(one.shape) for one in maps] == sizes
    assert same(prediction.images, found(images, crop=False, size=14).images)


def test_resizing() -> None:
    image = torch.rand(3, 30, 60)
    assert resize(image, 15).shape == (3, 15, 30)
    assert resize(image, 30) is image
    values = torch.arange(6.0).view(2, 3)
    assert at_size(values, (2, 3)) is values
    wide = at_size(values, (4, 9))
    assert torch.equal(wide[::2, 1::3], values)
    assert torch.equal(wide[1::2, 0::3], values)
    assert at_size(values, (1, 1)).tolist() == [[4]]  # the pixel that the centre lies in


@pytest.mark.parametrize(("given", "error", "message"), [
    ([], ValueError, "at least one image"),
    (torch.rand(16, 16), ValueError, r"add a channel"),
    (torch.full((3, 8, 8), 7.0), ValueError, r"in \[0, 1\], got values from 7"),
    (torch.zeros(1, 8, 8), ValueError, "3 channels"),
    (np.zeros((8, 8, 5)), TypeError, "from_numpy"),
    (np.full((8, 8, 3), 7.0), ValueError, r"in \[0, 1\], got values from 7"),
    (None, TypeError, "expected a path, a PIL image, an array or a tensor, or a list of them, got NoneType"),
    ([b"GIF89a"], TypeError, "got bytes"),
    ("none.png", ImageError, r"none\.png"),
])
@pytest.mark.parametrize("crop", [True, False])
def test_images_that_are_refused(model: spit.SpitModel, given: Any, error: type[Exception], message: str,
                                 crop: bool) -> None:
    with pytest.raises(error, match=message):
        Predictor(model)(given, crop=crop)


def test_sizes_that_are_refused(model: spit.SpitModel, images: list[Tensor]) -> None:
    with pytest.raises(ValueError, match="size of 1 to 16,384 pixels, got 0"):
        Predictor(model)(images, size=0)
    with pytest.raises(TypeError, match=r"^expected crop to be True or False, got 'no'$"):
        Predictor(model)(images, crop="no")  # type: ignore[arg-type]


# What a prediction answers


@torch.no_grad()
def test_top_and_tokens(model: spit.SpitModel, images: list[Tensor]) -> None:
    prediction = Predictor(model, "pet")(images, crop=False)
    output = [model(image[None], record=()) for image in images]
    for index, guesses in enumerate(prediction.top(2)):
        chances = output[index].logits[0].softmax(0)
        best = chances.topk(2).indices.tolist()
        assert [name for name, _ in guesses] == [model.config.class_names[one] for one in best]
        assert [guess.probability for guess in guesses] == pytest.approx(chances[best].tolist())
    assert [len(guesses) for guesses in prediction.top(9)] == [4, 4, 4]
    assert torch.equal(prediction.class_token, torch.cat([one.class_token for one in output]))
    assert torch.equal(prediction.tokens.values, torch.cat([one.tokens.values for one in output]))
    assert torch.equal(prediction.tokens.offsets, prediction.partition.offsets)
    for painted, one in zip(prediction.features(), output, strict=True):
        assert torch.equal(painted, one.partition.paint(one.tokens.values)[0])
    assert len(prediction) == 3
    assert repr(prediction).startswith("Prediction(pet, Partition(")
    assert repr(prediction.predictor) == "Predictor(pet, superpixel tokens, 32 px, cpu)"


def test_a_model_without_a_head_names_nothing(images: list[Tensor]) -> None:
    prediction = Predictor(small(num_classes=0), "trunk")(images, crop=False)
    assert prediction.logits.shape == (3, 24)
    with pytest.raises(ValueError, match="trunk: expected a model that knows classes"):
        prediction.top()


def test_targets_by_name(model: spit.SpitModel, images: list[Tensor]) -> None:
    prediction = Predictor(model)(images, crop=False)
    assert same(prediction.explain("relevance", "lynx"), prediction.explain("relevance", 1))
    assert same(prediction.explain("relevance", ["lynx", "cup", 0]), prediction.explain("relevance", [1, 3, 0]))
    assert not same(prediction.explain("relevance", "lynx"), prediction.explain("relevance", "cup"))
    with pytest.raises(ValueError, match="did you mean 'tabby'"):
        prediction.explain("relevance", "tabbi")


def test_answers_are_those_of_the_functions(model: spit.SpitModel, images: list[Tensor]) -> None:
    prediction = Predictor(model)(images, crop=False)
    assert same(prediction.explain("rollout"), spit.explain(model, images, "rollout"))
    assert same(prediction.segment(cut_on="keys").mask, spit.segment(model, images, cut_on="keys").mask)
    assert same(prediction.segment().mask, spit.segment(model, images).mask)
    with pytest.raises(ValueError, match="no_such"):
        prediction.segment(no_such=1)
    with pytest.raises(TypeError, match="where the prediction is made"):
        prediction.segment(size=20)


def test_other_tokens(model: spit.SpitModel, images: list[Tensor]) -> None:
    first = Predictor(model)(images, crop=False)
    digest = first.predictor.digest
    other = first.with_tokenizer("patch", size=8)
    assert other.partition.counts.tolist() == [25, 20, 25]
    assert other.predictor.model.config.tokenizer == "patch"
    assert other.predictor.digest == digest == weights.digest(other.predictor.model)
    assert torch.equal(other.logits, Predictor(model.with_tokenizer("patch", size=8))(images, crop=False).logits)


# How often the model runs


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Callable[[spit.SpitModel], Counter[str]]:
    """``calls(model)``: a counter of tokenizations, features and passes, of images and with gradients."""

    def count(model: spit.SpitModel) -> Counter[str]:
        made: Counter[str] = Counter()
        tokenizer, extractor = model.tokenizer, model.extractor

        def tokenize(blocks: Any) -> Any:
            made["tokenizations"] += 1
            return tokenizer(blocks)

        def extract(blocks: Any, partition: Any) -> Any:
            made["features"] += 1
            return extractor(blocks, partition)

        def passed(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            made["with gradients" if torch.is_grad_enabled() else "passes"] += 1

        monkeypatch.setattr(model, "tokenizer", tokenize)
        monkeypatch.setattr(model, "extractor", extract)
        model.backbone.register_forward_pre_hook(passed)
        return made

    return count


def test_no_pass_twice(images: list[Tensor], calls: Callable[[spit.SpitModel], Counter[str]]) -> None:
    model = small()
    made = fit_prototypes(model, images[:1])
    counted = calls(model)
    prediction = Predictor(model)(images[0], crop=True, size=32)
    assert counted == {"tokenizations": 1, "features": 1}
    prediction.explain("flow")
    prediction.top()
    prediction.explain(PrototypeProjection(made))
    prediction.segment()  # its pass of joined tokens is another model's
    prediction.segment(merge=False)
    prediction.segment(cut_on="keys", layer=0)
    prediction.features()
    spit.correspond(prediction, prediction)
    assert counted == {"tokenizations": 1, "features": 1, "passes": 1}
    for target in (None, 1, 2):
        prediction.explain("relevance", target)
    assert counted == {"tokenizations": 1, "features": 1, "passes": 1, "with gradients": 1}


def test_classes_cost_a_pass_that_records_nothing(images: list[Tensor], calls: Callable[[spit.SpitModel], Counter[str]]
                                                  ) -> None:
    model = small()
    counted, recorded = calls(model), []
    model.backbone.register_forward_hook(lambda module, inputs, answer: recorded.append(inputs[1]))
    prediction = Predictor(model)(images[0], crop=False)
    prediction.top()
    top, class_token = prediction.logits, prediction.class_token
    assert counted == {"tokenizations": 1, "features": 1, "passes": 1}
    assert recorded == [None]
    prediction.segment(merge=False)
    assert counted == {"tokenizations": 1, "features": 1, "passes": 2}
    [seen] = prediction.passes
    assert torch.equal(seen.logits, top)
    assert torch.equal(seen.class_token, class_token)


def test_a_batch_is_tokenized_at_once(images: list[Tensor], calls: Callable[[spit.SpitModel], Counter[str]],
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    model = small()
    counted = calls(model)
    Predictor(model)(images, crop=False).explain("relevance")
    assert counted == {"tokenizations": 1, "features": 1, "passes": 3, "with gradients": 3}  # on a CPU each alone
    monkeypatch.setattr(predictor, "ALONE", ())
    counted.clear()
    Predictor(model)(images, crop=False).explain("relevance")
    assert counted == {"tokenizations": 1, "features": 1, "passes": 1, "with gradients": 1}


def test_prototypes_are_found_once_for_all_images(images: list[Tensor], monkeypatch: pytest.MonkeyPatch,
                                                  tmp_path: Path) -> None:
    found = spit.load("spit_tiny_16", device="cpu")
    hashed = []
    digest = weights.digest
    monkeypatch.setattr(weights, "digest", lambda model: hashed.append(model) or digest(model))
    prediction = found(images, crop=False)
    for _ in range(2):
        prediction.explain("prototype")
    assert len(hashed) == 1


# An image's answers are its own, whatever is kept


def answers(prediction: Prediction) -> dict[str, Any]:
    found = prediction.segment(merge=False)
    keys = prediction.segment(cut_on="keys", layer=1, foreground="class_token")
    return {"logits": list(prediction.logits), "saliency": found.saliency, "mask": found.mask, "keys": keys.mask,
            **{name: prediction.explain(name, 1) for name in ("flow", "rollout", "relevance", "random")}}


@pytest.mark.parametrize("tokenizer", ["patch", "superpixel"])
def test_an_image_alone_and_in_a_batch(tokenizer: str, images: list[Tensor]) -> None:
    # Heads as wide as those of real models: in narrower ones SDPA's own sums depend on the number of threads.
    found = Predictor(small(tokenizer=tokenizer, tokenizer_options={"size": 8} if tokenizer == "patch" else {},
                            width=192, heads=3))
    together, backwards = answers(found(images, crop=False)), answers(found(images[::-1], crop=False))
    for index, image in enumerate(images):
        for name, answer in answers(found(image, crop=False)).items():
            assert torch.equal(answer[0], together[name][index]), name
            assert torch.equal(answer[0], backwards[name][-1 - index]), name


@pytest.mark.skipif(not has_bf16(), reason="this CPU has no bf16")
def test_bf16_on_a_cpu(images: list[Tensor]) -> None:
    predictor = spit.load("spit_tiny_16", device="cpu")
    exact = predictor(images, crop=False)
    answers = []
    for threads in (1, 2):
        with torch_threads(threads), torch.autocast("cpu", torch.bfloat16):
            answers.append(predictor(images, crop=False))
            assert answers[-1].segment().saliency[0].dtype == torch.float32
    torch.testing.assert_close(answers[0].logits.float(), exact.logits, rtol=0, atol=0.15)
    assert torch.equal(answers[0].logits, answers[1].logits)  # threads see the context, and change nothing
    assert not torch.equal(answers[0].logits.float(), exact.logits)


def test_too_large_to_keep(model: spit.SpitModel, images: list[Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answers(Predictor(model)(images, crop=False))
    monkeypatch.setattr(predictor, "KEPT", 0)
    prediction = Predictor(model)(images, crop=False)
    assert not any(one._traces for one in prediction.passes)
    for name, answer in answers(prediction).items():
        assert same(answer, expected[name]), name
    assert not any(one._traces for one in prediction.passes)


def test_one_pass_for_all_as_on_a_gpu(model: spit.SpitModel, images: list[Tensor], monkeypatch: pytest.MonkeyPatch
                                      ) -> None:
    expected = answers(Predictor(model)(images, crop=False))
    monkeypatch.setattr(predictor, "ALONE", ())
    for name, answer in answers(Predictor(model)(images, crop=False)).items():
        for one, other in zip(answer, expected[name], strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_a_compiled_model(images: list[Tensor]) -> None:
    expected = answers(Predictor(small())(images, crop=False))
    model = small()
    model.compile(backend="eager")
    compiled, runs = model.backbone.forward._run, []
    model.backbone.forward._run = lambda *arguments: runs.append(arguments) or compiled(*arguments)
    prediction = Predictor(model)(images, crop=False)
    for name, answer in answers(prediction).items():
        for one, other in zip(answer, expected[name], strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    assert len(runs) == 3 + 3  # each image, and both sides of its cut


class Mixer(nn.Module):
    """A backbone without attention, which reports nothing to the recorder."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, tokens: Tokens, recorder: Any = None) -> Tokens:
        return tokens.replace(tokens.values + self.layer(tokens.values))


@pytest.mark.usefixtures("restored_parts")
def test_a_backbone_without_attention(images: list[Tensor]) -> None:
    spit.register_backbone("quiet_mixer", Mixer)
    model = small(backbone="quiet_mixer")
    prediction = Predictor(model)(images, crop=False)
    assert torch.equal(prediction.logits[:1], model(images[:1]))
    assert prediction.segment().mask[0].shape == (40, 40)
    made = fit_prototypes(model, images)
    assert same(prediction.explain(PrototypeProjection(made, "paper")),
                spit.explain(model, images, PrototypeProjection(made, "paper")))
    with pytest.raises(ValueError, match="got backbone 'quiet_mixer'; use form='paper'"):
        prediction.explain(PrototypeProjection(made))
    for ask in (lambda: prediction.explain("flow"), lambda: prediction.explain("relevance"),
                lambda: prediction.segment(layer=0), lambda: prediction.segment(cut_on="keys")):
        with pytest.raises(ValueError, match=r"'quiet_mixer' does not report (its attention|the features)"):
            ask()


def test_arrays_of_every_kind() -> None:
    predictor = Predictor(spit.create_model("vit_tiny_16").eval())
    grey = np.random.default_rng(0).integers(0, 256, (40, 48), dtype=np.uint8)
    colors = np.repeat(grey[:, :, None], 3, 2)
    wanted = predictor(torch.from_numpy(colors).movedim(-1, 0), crop=False).logits
    for array in (grey, grey[:, :, None], colors, colors[None], (colors / 255).astype(np.float64)):
        assert torch.allclose(predictor(array, crop=False).logits, wanted, atol=1e-5), array.shape


def test_a_model_is_no_source() -> None:
    with pytest.raises(TypeError, match=r"spit.Predictor\(model\)"):
        spit.load(spit.create_model("vit_tiny_16"))  # type: ignore[arg-type]


def test_an_unknown_option_of_segment_is_named() -> None:
    prediction = Predictor(spit.create_model("vit_tiny_16").eval())(torch.rand(3, 32, 32))
    with pytest.raises(ValueError, match="unknown option of segment 'taus'; did you mean 'tau'"):
        prediction.segment(taus=3)


def test_predictions_of_two_models_do_not_correspond() -> None:
    torch.manual_seed(0)
    first, second = (Predictor(spit.create_model("vit_tiny_16").eval(), name)(torch.rand(3, 32, 32)) for name in "ab")
    with pytest.raises(ValueError, match="predictions of one model, got a and b"):
        spit.correspond(first, second)


def test_arrays_that_are_views_turned_round(model: spit.SpitModel) -> None:
    photo = np.random.default_rng(0).integers(0, 256, (20, 24, 3), np.uint8)
    seen = Predictor(model)
    for view in (photo[..., ::-1], photo[:, ::-1], photo[::-1].astype(np.float32) / 255):
        assert torch.equal(seen(view, crop=False).logits, seen(view.copy(), crop=False).logits)


def test_pixels_that_the_caller_changes_later(model: spit.SpitModel) -> None:
    image = torch.randint(0, 256, (3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    kept = Predictor(model)(image.clone(), crop=False).segment()
    prediction = Predictor(model)(image, crop=False)
    image.zero_()
    assert torch.equal(prediction.segment().saliency, kept.saliency)


@pytest.mark.parametrize("count", [-1, 0, 1.5, True])
def test_counts_of_classes_that_are_refused(model: spit.SpitModel, images: list[Tensor], count: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"expected top .* got"):
        Predictor(model)(images[0]).top(count)
    with pytest.raises(ValueError, match="expected a number of classes of 1 or more, got"):
        Predictor(model)(images[0]).top_classes(count)


def test_weights_are_hashed_once_for_other_tokens(model: spit.SpitModel, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = []
    monkeypatch.setattr(weights, "digest", lambda model: hashed.append(model) or "digest")
    one = Predictor(model)
    assert one.with_tokenizer("patch").digest == one.with_backbone("merging").digest == one.digest == "digest"
    assert hashed == [model]


@pytest.mark.parametrize(("array", "advice"), [
    (np.zeros((8, 8, 4), np.uint8), r"leave out the alpha with image\[..., :3\]"),
    (np.zeros((8, 8, 3), np.int64), r"got int64 of shape \(8, 8, 3\); convert it with image.astype\('uint8'\)"),
    (np.zeros((8, 8, 3), np.uint16), r"convert it with \(image / 65535\).astype\('float32'\)"),
])
def test_arrays_that_are_refused_say_how_to_convert_them(model: spit.SpitModel, array: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        Predictor(model)(array)


@pytest.mark.parametrize("picture", [
    Image.fromarray(np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)),
    Image.fromarray(np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)),
    Image.fromarray(np.full((8, 8, 4), 100, np.uint8)),
], ids=["float", "16 bit", "alpha"])
def test_a_pil_image_has_the_colours_of_its_file(model: spit.SpitModel, picture: Image.Image, tmp_path: Path) -> None:
    path = tmp_path / "picture.tiff"
    picture.save(path)
    predictor = spit.Predictor(model)
    assert torch.equal(predictor(picture).images[0], predictor(path).images[0])
