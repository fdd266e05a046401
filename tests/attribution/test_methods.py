import pickle

import pytest
import torch

import spit
from spit.attribution import (
    METHODS,
    Lime,
    MethodOptions,
    PrototypeProjection,
    RandomControl,
    TokenRise,
    create_method,
    fit_prototypes,
)
from spit.attribution.methods import class_index, read_target
from spit.errors import ImageError, WeightsError
from spit.predictor import Predictor


def method(name, model, images):
    """A method that is ready, and quick."""
    if name == "lime":
        return Lime(samples=8, regions=6)
    if name.startswith("token_"):
        return create_method(name, samples=24, cells=5)
    return PrototypeProjection(fit_prototypes(model, images)) if name == "prototype" else name


@pytest.mark.parametrize("tokenizer", ["patch", "voronoi", "superpixel"])
@pytest.mark.parametrize("name", METHODS)
def test_an_image_is_explained_alone_as_in_any_batch(small, images, name, tokenizer):
    model = small(tokenizer)
    before, chosen = images.clone(), method(name, model, images)
    together = spit.explain(model, images, chosen)
    assert together.shape == (3, 40, 40)
    assert torch.equal(images, before)
    for image, expected in zip(images, together, strict=True):
        torch.testing.assert_close(spit.explain(model, image, chosen)[0], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", METHODS)
def test_images_of_different_sizes(small, images, name):
    model = small()
    mixed, chosen = [images[0], images[1, :, :24], images[2, :, :24]], method(name, model, images)
    got = spit.explain(model, mixed, chosen, target=[0, 1, 2])
    assert [tuple(values.shape) for values in got] == [(40, 40), (24, 40), (24, 40)]
    for image, values, label in zip(mixed, got, (0, 1, 2), strict=True):
        torch.testing.assert_close(values, spit.explain(model, image, chosen, label)[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "lime"])
def test_every_pixel_has_the_value_of_its_token(small, images, name):
    model = small()
    [values] = spit.explain(model, images[0], method(name, model, images))
    labels = model.tokenizer(images[:1]).labels[0]
    for region in range(int(labels.max()) + 1):
        assert len(values[labels == region].unique()) == 1


@pytest.mark.parametrize(("name", "depends"), [("flow", False), ("rollout", False), ("random", False),
                                               ("prototype", True), ("lime", True), ("relevance", True),
                                               ("token_rise", True)])
def test_which_methods_are_of_a_class(small, images, name, depends):
    model = small()
    chosen = method(name, model, images)
    first, second = (spit.explain(model, images, chosen, target) for target in (0, 3))
    assert torch.equal(first, second) != depends
    assert METHODS[name].of_class == depends


@pytest.mark.parametrize("name", METHODS)
def test_a_method_goes_to_other_processes(small, images, name):
    chosen = method(name, small("patch"), images)
    pickle.loads(pickle.dumps(chosen))
    if name not in ("prototype", "random"):
        assert pickle.loads(pickle.dumps(chosen)) == chosen


def test_relevance_is_the_default(small, images):
    model = small()
    expected = spit.explain(model, images, "relevance")
    assert torch.equal(spit.explain(model, images), expected)
    assert torch.equal(Predictor(model)(images, crop=False).explain(), expected)


def test_what_cannot_be_explained(small, images):
    model = small()
    for arguments, error, message in (
        ({"method": "flwo"}, ValueError, "did you mean 'flow'"),
        ({"method": "gradcam"}, ValueError, "random, got 'gradcam'"),
        ({"method": "token_shapley"}, ValueError, "token_rise"),
        ({"method": "token_occlusion"}, ValueError, "token_rise"),
        ({"method": 3}, TypeError, "by name"),
        ({"method": Lime}, TypeError, r"^expected an instance, such as Lime\(\), got the class Lime$"),
        ({"target": 5}, ValueError, "from 0 to 4, got 5"),
        ({"target": [0, 1]}, ValueError, "each of 3 images"),
        ({"target": 0.5}, TypeError, "an integer"),
        ({"method": "prototype"}, WeightsError, "fit_prototypes"),
    ):
        with pytest.raises(error, match=message):
            spit.explain(model, images, **arguments)
    with pytest.raises(ImageError, match=r"cat\.png"):
        spit.explain(model, "cat.png")
    model.train()
    with pytest.raises(ValueError, match=r"model\.eval\(\)"):
        spit.explain(model, images)


def test_a_model_without_classes_is_explained_by_methods_that_need_none(small, images):
    model = small(classes=0)
    for name in ("flow", "rollout", "random"):
        assert spit.explain(model, images, name).shape == (3, 40, 40)
    for arguments in ({"method": "relevance"}, {"method": "flow", "target": 0}):
        with pytest.raises(ValueError, match="without a head"):
            spit.explain(model, images, **arguments)


def names(options, *arguments):
    return [made.name for made in options.methods_for(*arguments)]


def test_methods_for_a_model(small, images, tmp_path):
    model = small()
    left_out = {}
    assert names(MethodOptions(), model, left_out) == ["relevance", "flow"]
    assert "--prototypes FILE" in left_out.pop("prototype")
    assert not left_out
    file = fit_prototypes(model, images).save(tmp_path / "own.safetensors")
    assert names(MethodOptions(prototypes=(file,)), model) == ["relevance", "prototype", "flow"]
    assert names(MethodOptions(("random,flow", "random")), model) == ["random", "flow"]
    assert MethodOptions(("lime,token_rise",), samples=3).methods_for(model) == [Lime(samples=3), TokenRise(samples=3)]
    chosen = MethodOptions(("lime,prototype",), lime_p="keep", lime_remove="tokens", prototypes=(file,),
                           prototype_form="paper").methods_for(model)
    assert chosen[0] == Lime(p="keep", remove="tokens")
    assert chosen[1].form == "paper"
    assert torch.equal(spit.explain(model, images, chosen[1]),
                       spit.explain(model, images, PrototypeProjection(file, "paper")))
    other = small(seed=1)
    MethodOptions(prototypes=(file,)).check_prototypes([other, model])
    with pytest.raises(WeightsError, match=r"own.safetensors has prototypes of other weights"):
        MethodOptions(prototypes=(file,)).check_prototypes([other])
    with pytest.raises(WeightsError, match="no prototypes"):
        MethodOptions(("prototype",)).methods_for(model)
    with pytest.raises(ValueError, match="did you mean 'flow'"):
        MethodOptions(("flwo",))
    assert all(create_method(name).name == name for name in METHODS)


def test_random_values_depend_on_pixels_and_seed_alone(small, images):
    model = small("patch")
    first = spit.explain(model, images, "random")
    torch.manual_seed(7)
    assert torch.equal(first, spit.explain(model, images.float() / 255, "random"))
    assert torch.equal(first, spit.explain(small("patch", seed=1), images, "random"))
    assert not torch.equal(first, spit.explain(model, images, RandomControl(seed=1)))
    assert len(first[0].unique()) == 25


NAMES = ("tabby", "Egyptian cat", "crane", "lynx cat", "crane")


@pytest.fixture
def prediction(small, images):
    found = Predictor(small())(images, crop=False)
    found.predictor.class_names = NAMES
    return found


def test_one_for_all_or_one_for_each_by_index_or_name(prediction):
    assert read_target(prediction, 2).tolist() == [2, 2, 2]
    assert read_target(prediction, torch.tensor([4, 0, 1], dtype=torch.int32)).tolist() == [4, 0, 1]
    assert read_target(prediction, "Tabby").tolist() == [0, 0, 0]
    assert read_target(prediction, ["egyptian cat", 2, "3"]).tolist() == [1, 2, 3]


def test_the_predicted_class_is_the_default(prediction):
    assert torch.equal(read_target(prediction, None), prediction.logits.argmax(1))


@pytest.mark.parametrize("target", [1.5, True, [0, 1.5, 2], {"a": 1}])
def test_what_is_no_class(prediction, target):
    with pytest.raises(TypeError, match="a class as an integer or a name"):
        read_target(prediction, target)


@pytest.mark.parametrize(("target", "message"), [
    ([0, 1], r"each of 3 images, got shape \(2,\)"), (5, "from 0 to 4, got 5"), (-1, "from 0 to 4, got -1")])
def test_classes_that_are_not_there(prediction, target, message):
    with pytest.raises(ValueError, match=message):
        read_target(prediction, target)


def test_a_class_is_found_by_its_exact_name_then_by_its_index_then_by_any_spelling():
    numbers = ("0", "1", "10", "2")
    assert [class_index(numbers, name) for name in ("10", "2", "3")] == [2, 3, 3]
    assert class_index(("Crane", "crane"), "crane") == 1
    assert class_index(NAMES, "1") == class_index(NAMES, "egyptian CAT") == 1
    with pytest.raises(ValueError, match="classes 0 and 1"):
        class_index(("Crane", "crane"), "CRANE")


@pytest.mark.parametrize(("name", "message"), [
    ("cat", "did you mean 'lynx cat' or 'Egyptian cat'"), ("taby", "did you mean 'tabby'"),
    ("crane", "classes 2 and 4"), ("5", "from 0 to 4 or its name, got '5'"), ("qqq", "got 'qqq'$")])
def test_names_that_are_none_or_several(name, message):
    with pytest.raises(ValueError, match=message):
        class_index(NAMES, name)
