"""Checkpoints of other projects as our models: ``timm``, and the authors' release in ``published``."""
