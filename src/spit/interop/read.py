"""A checkpoint of another project, whichever it is of."""

from pathlib import Path

from spit.interop.files import read_tensors
from spit.interop.published.loader import is_published, read_published
from spit.interop.timm import read_timm
from spit.weights import Checkpoint


def read_file(path: Path, tokenizer: str | None = None, heads: int | None = None, sigma: float | None = None,
              size: int | None = None) -> Checkpoint:
    """The checkpoint in a ``.safetensors`` or ``.pth`` file: of the authors' release, or a timm ViT state dict.

    Args:
        tokenizer, heads, sigma, size: as in :func:`from_published`; a timm ViT state dict has square patches, and takes
            neither sigma nor size.
    """
    tensors = read_tensors(path, "a timm ViT state dict or a checkpoint of the authors' release")
    if is_published(tensors):
        return read_published(tensors, tokenizer, heads, sigma, size, name=str(path))
    if sigma is not None or size is not None:
        raise ValueError("sigma and size are of the release's models, got a timm ViT state dict; leave them out")
    if tokenizer not in (None, "patch"):
        raise ValueError(f"expected the tokenizer patch for a timm ViT state dict, got {tokenizer!r}; "
                         "model.with_tokenizer(...) runs it with another")
    return read_timm(tensors, heads, name=str(path))
