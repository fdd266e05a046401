"""Pictures of partitions, masks and maps, with Pillow and numpy alone."""

from spit.drawing.labels import encode_labels, read_labels
from spit.drawing.masks import draw_mask
from spit.drawing.panel import Tile, draw_panel
from spit.drawing.pictures import draw_labels, draw_mean_colors, draw_overlay, encode_png

__all__ = [
    "Tile", "draw_labels", "draw_mask", "draw_mean_colors", "draw_overlay", "draw_panel", "encode_labels", "encode_png",
    "read_labels",
]
