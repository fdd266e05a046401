"""``import spit.timm``: spit's architectures by timm.create_model."""

from typing import Any

import torch


def test_timm_makes_our_models(timm: Any) -> None:
    import spit.timm

    assert "spit_tiny_16" in timm.list_models("spit_*")
    assert spit.timm.spit_tiny_16.__name__ == "spit_tiny_16"
    model = timm.create_model("spit_tiny_16", num_classes=5, drop_path_rate=0.1, in_chans=3)
    assert isinstance(model, spit.SpitModel)
    assert (model.config.drop_path, model.config.num_classes) == (0.1, 5)
    with torch.no_grad():
        assert model.eval()(torch.rand(1, 3, 64, 64)).shape == (1, 5)
        assert timm.create_model("spit_tiny_16", pretrained=True)(torch.rand(1, 3, 64, 64)).shape == (1, 1000)
