import pytest
import torch

import spit
from spit import registry
from spit.attribution import PrototypeProjection, Prototypes, fit_prototypes, load_prototypes
from spit.attribution.prototypes import find_prototypes
from spit.errors import WeightsError


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
    with pytest.raises(WeightsError, match="no prototypes of vit_base_16 come"):
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
