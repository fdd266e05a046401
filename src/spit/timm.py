"""spit's architectures in timm's registry: ``import spit.timm``, then ``timm.create_model("spit_tiny_16")``."""

from collections.abc import Callable
from typing import Any

from spit.errors import MissingExtra
from spit.model import SpitModel
from spit.registry import ARCHITECTURES, create_model

try:
    from timm.models import register_model
except ImportError as error:
    raise MissingExtra("timm", "timm", "import spit.timm") from error

RENAMED = {"drop_path_rate": "drop_path", "in_chans": "channels"}  # timm's options: ours
OF_TIMM = ("pretrained_cfg", "pretrained_cfg_overlay", "cache_dir")  # what timm passes to every entry point


def _entry_point(name: str) -> Callable[..., SpitModel]:
    def create(pretrained: bool = False, **options: Any) -> SpitModel:
        ours = {RENAMED.get(key, key): value for key, value in options.items() if key not in OF_TIMM}
        return create_model(name, pretrained, **ours)

    create.__name__ = create.__qualname__ = name
    create.__doc__ = f"{name}; the options are those of spit.create_model, with timm's drop_path_rate and in_chans."
    return create


for _name in ARCHITECTURES:
    globals()[_name] = register_model(_entry_point(_name))
