"""Superpixels of images that do not fit in memory, read and written tile by tile: ``spit.superpixels_tiled``."""
