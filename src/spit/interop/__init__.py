"""Checkpoints of other projects as our models."""

from pathlib import Path

from spit.interop.files import read_tensors
from spit.interop.published import from_published, is_published, published_options, read_published
from spit.interop.timm import from_timm, read_timm
from spit.weights import Checkpoint

__all__ = ["from_published", "from_timm", "published_options", "read_file", "read_published", "read_timm"]


def read_file(path: Path) -> Checkpoint:
    """The checkpoint in a ``.safetensors`` or ``.pth`` file: of the authors' release, or a ViT in timm's names."""
    tensors = read_tensors(path, "a ViT in timm's names or of the authors' release")
    return (read_published if is_published(tensors) else read_timm)(tensors, name=str(path))
