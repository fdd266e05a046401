"""The hot operations as numba loops, with the names and results of ``kernels.reference``."""

from spit.kernels.cpu.features import color_patches, gradient_histogram, position_histogram, scharr
from spit.kernels.cpu.preprocess import diffuse, look_up, saturate
from spit.kernels.cpu.refinement import refine
from spit.kernels.cpu.regions import compose, region_boxes, region_sizes
from spit.kernels.cpu.superpixels import between, superpixel_labels, superpixels
from spit.kernels.cpu.voronoi import nearest_sites

__all__ = [
    "between",
    "color_patches",
    "compose",
    "diffuse",
    "gradient_histogram",
    "look_up",
    "nearest_sites",
    "position_histogram",
    "refine",
    "region_boxes",
    "region_sizes",
    "saturate",
    "scharr",
    "superpixel_labels",
    "superpixels",
]
