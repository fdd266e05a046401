"""The authors' release (docs/published.md): tokenizers ``published`` and ``published_voronoi``, features ``published``,
and its checkpoints.

spit.parts names these modules, which register their parts as a plug-in does; no module of the arrows imports them.
"""
