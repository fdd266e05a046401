"""Checkpoints of other projects as our models."""

from spit.interop.timm import from_timm

__all__ = ["from_timm"]
