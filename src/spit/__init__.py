"""spit: superpixel tokens for Vision Transformers, the same on a laptop CPU and on a GPU cluster.

``import spit`` loads nothing: the public names are those of :mod:`spit.public`, imported when the first of them is
asked for. So ``import spit.runtime`` works where torch is not installed.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spit.public import *  # noqa: F403
    from spit.public import __all__ as __all__

__version__ = "0.1.0"

ON_ARRAYS = {  # public names that need no torch
    "hierarchy": "spit.arrays", "superpixels": "spit.arrays",
    "superpixels_tiled": "spit.tiles.run", "superpixels_video": "spit.video",
    "regions": "spit.labels.regions", "Regions": "spit.labels.regions",
    "adjacency": "spit.labels.adjacency", "Adjacency": "spit.labels.adjacency",
    "polygons": "spit.labels.polygons", "Polygons": "spit.labels.polygons",
    "draw": "spit.labels.drawing",
}


def __getattr__(name: str) -> Any:
    if name in ON_ARRAYS:
        return getattr(import_module(ON_ARRAYS[name]), name)
    if find_spec(f"spit.{name}") is not None:
        return import_module(f"spit.{name}")
    public = import_module("spit.public")
    if name not in ("__all__", *public.__all__):
        raise AttributeError(f"module 'spit' has no attribute {name!r}")
    globals().update({one: getattr(public, one) for one in ("__all__", *public.__all__)})
    return globals()[name]


def __dir__() -> list[str]:
    return [*globals(), *import_module("spit.public").__all__]
