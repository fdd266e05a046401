"""Names of devices."""

import pytest
import torch

import spit
from spit.devices import choose_device


@pytest.mark.parametrize(("device", "message"), [("tpu", "cpu, cuda or auto, got 'tpu'"), ("cuda", "no CUDA device"),
                                                 ("cuda:7", "'cuda:7'; use cpu")])
def test_devices_that_are_not_there(device: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=message):
        spit.load("no such model, which is not looked for yet", device=device)
    assert choose_device("auto") == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ValueError, match="torch finds 2 devices for 'cuda:2'; use cpu or cuda:0"):
        choose_device("cuda:2")
    assert (choose_device("auto"), choose_device("cuda:1")) == ("cuda", "cuda:1")


@pytest.mark.parametrize("name", ["cpu:x", "float32", "cpu:", "cuda:-1", "cpu:7", "meta", "", "None", "cuda:99999"])
def test_a_device_that_is_none(name: str) -> None:
    with pytest.raises(ValueError, match=r"expected (device cpu, cuda|a device that exists)"):
        choose_device(name)
