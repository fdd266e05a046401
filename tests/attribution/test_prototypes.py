from types import SimpleNamespace

import numpy as np
import pytest
import torch

import spit
from spit import registry
from spit.attribution import (
    PrototypeProjection,
    Prototypes,
    fit_prototypes,
    load_prototypes,
    occlude,
    rank_pixels,
)
from spit.attribution.prototypes import find_prototypes, project, received
from spit.backbone import Recorder
from spit.backbone.block import LayerScale
from spit.errors import WeightsError
from spit.predictor import Predictor


def test_saved_and_loaded(small, images, tmp_path):
    made = fit_prototypes(small(), images)
    path = made.save(tmp_path / "new" / "own.safetensors")
    loaded = load_prototypes(path)
    assert torch.equal(loaded.values, made.values)
    assert torch.equal(loaded.counts, made.counts)
    assert (loaded.about, loaded.digest) == (made.about, made.digest)
    assert [file.name for file in path.parent.iterdir()] == ["own.safetensors"]


def test_a_thousand_classes_stay_under_three_megabytes(tmp_path):
    path = Prototypes(torch.zeros(1000, 5, 192), torch.zeros(1000).long(), {}).save(tmp_path / "a.safetensors")
    assert path.stat().st_size < 3_000_000


def test_found_by_weights_among_files_and_checkpoints(small, images, tmp_path, monkeypatch):
    own, other = small(), small(seed=1)
    files = [fit_prototypes(model, images).save(tmp_path / f"{index}.safetensors")
             for index, model in enumerate((other, own))]
    assert torch.equal(find_prototypes(own, files).values, load_prototypes(files[1]).values)
    assert find_prototypes(own.with_tokenizer("patch"), files).digest == find_prototypes(own, files).digest
    monkeypatch.setattr(registry, "CHECKPOINTS", tmp_path / "checkpoints")
    with pytest.raises(WeightsError, match="no prototypes of this model"):
        find_prototypes(own, files[:1])
    load_prototypes(files[1]).save(
        tmp_path / "checkpoints" / "spit_tiny_16.deit_retrofit" / "prototypes.safetensors")
    assert find_prototypes(own).digest == load_prototypes("spit_tiny_16").digest
    with pytest.raises(WeightsError, match="expected a model that comes with prototypes, got vit_base_16; make them"):
        load_prototypes("vit_base_16")


def test_errors(small, images, tmp_path):
    made = fit_prototypes(small(), images)
    with pytest.raises(WeightsError, match=r"NAME\.safetensors"):
        made.save(tmp_path / "own.pt")
    with pytest.raises(WeightsError, match="there is none"):
        load_prototypes(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"no tensors here")
    with pytest.raises(WeightsError, match="damaged"):
        load_prototypes(tmp_path / "bad.safetensors")
    with pytest.raises(WeightsError, match="7 classes and width 24"):
        made.check(small(classes=7))
    with pytest.raises(WeightsError, match="7 classes and width 24"):
        spit.explain(small(classes=7), images, PrototypeProjection(made))
    with pytest.raises(ValueError, match="form to be one of class, paper"):
        PrototypeProjection(made, "pca")


def test_equals_the_svd_of_the_centred_matrix():
    random = torch.Generator().manual_seed(0)
    for count, width in ((30, 6), (4, 16)):  # more rows than columns, and fewer
        tokens, prototypes = (torch.randn(n, width, generator=random) for n in (count, 3))
        rows = np.concatenate([tokens.numpy(), prototypes.numpy()]).astype(np.float64)
        axis = np.linalg.svd(rows - rows.mean(0))[2][0]
        expected = (rows - rows.mean(0)) @ axis
        expected *= np.sign(expected[count:].sum())
        np.testing.assert_allclose(project(tokens, prototypes).numpy(), expected[:count], rtol=1e-4, atol=1e-5)


def test_tokens_like_the_prototypes_are_bright():
    """Half of the tokens look as the prototypes do, half the other way."""
    toward = torch.tensor([1.0, 0, 0, 0])
    tokens = torch.cat([toward + 0.1 * torch.rand(5, 4), -toward + 0.1 * torch.rand(5, 4)])
    values = project(tokens, toward.expand(3, 4))
    assert values[:5].min() > 0 > values[5:].max()
    assert project(tokens, -toward.expand(3, 4))[:5].max() < 0


def test_the_target_chooses_the_prototypes(small, images):
    model = small()
    made = fit_prototypes(model, images, [0, 1, 2])
    method = PrototypeProjection(made, "paper")
    output = model(images, record=())
    values = [project(tokens, made.values[1]) for tokens in output.tokens]
    expected = output.partition.paint(torch.cat(values).detach())
    torch.testing.assert_close(spit.explain(model, images, method, 1), expected)


def test_the_class_form_by_hand(small, images):
    """Value, attention's projection, LayerScale, final norm, then the class's prototypes against all prototypes."""
    model = small()
    block, norm = model.backbone.blocks[-1], model.backbone.norm
    block.scale1 = LayerScale(24, 0.5)
    torch.nn.init.uniform_(norm.weight, 0.5, 2)
    made = fit_prototypes(model, images, [0, 1, 2])
    [seen] = Predictor(model)(images[0], crop=False).passes
    with torch.no_grad():
        rows = model.encode(model.tokenize(images[:1])[1], recorder := Recorder({"features": [0]})).values
        entering = block.norm1(recorder.features[0].values)[1:]
        told = 0.5 * (block.attention.qkv.weight[48:] @ entering.T).T @ block.attention.projection.weight.T
        told = (told - told.mean(1, keepdim=True)) * norm.weight
    assert len(rows) == len(told) + 1
    expected = told @ (made.values[2].mean(0) - made.values.mean((0, 1)))
    [got] = PrototypeProjection(made)(seen, torch.tensor([2]))
    torch.testing.assert_close(got, seen.paint(expected)[0], atol=1e-5, rtol=1e-4)


def test_only_the_class_form_depends_on_the_class(photo):
    """|corr| of the maps of two classes, and what occlusion says of the bright side."""
    predictor = spit.load("spit_tiny_16", device="cpu")
    prediction = predictor(photo("coffee", 224), crop=False)
    for form, least, most in (("class", 0, 0.9), ("paper", 0.999, 1.001)):
        maps = [prediction.explain(PrototypeProjection(form=form), target).flatten() for target in (967, 281, 817)]
        same = torch.corrcoef(torch.stack(maps))[0, 1:].abs()
        assert least <= same.min() <= same.max() <= most, form
    espresso = int(prediction.logits.argmax())
    values = prediction.explain(PrototypeProjection())
    seen = torch.stack(prediction.images)
    [without_top, without_rest] = (predictor(occlude(seen, rank_pixels(side), 0.2), crop=False)
                                   .probabilities[0, espresso] for side in (values, -values))
    assert without_top < without_rest / 2


def test_the_class_form_needs_the_layers_of_a_transformer():
    model = SimpleNamespace(backbone=torch.nn.Identity(), config=SimpleNamespace(backbone="mine"))
    with pytest.raises(ValueError, match="got backbone 'mine'; use form='paper'"):
        received(SimpleNamespace(model=model))


def test_a_file_will_do(small, images, tmp_path):
    model = small()
    made = fit_prototypes(model, images)
    path = made.save(tmp_path / "own.safetensors")
    by_file, by_object = PrototypeProjection(path), PrototypeProjection(made)
    assert torch.equal(spit.explain(model, images, by_file), spit.explain(model, images, by_object))
    assert by_file.config() == by_object.config() == {"prototypes": made.digest, "form": "class"}


def test_an_image_of_one_token(small):
    model = small()
    made = fit_prototypes(model, torch.zeros(1, 3, 8, 8))
    for form in ("class", "paper"):
        assert spit.explain(model, torch.zeros(1, 3, 8, 8), PrototypeProjection(made, form)).isfinite().all()
