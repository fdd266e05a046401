"""Checkpoints of other projects as our models."""

from spit.interop.timm import from_timm, read_timm

__all__ = ["from_timm", "read_timm"]
