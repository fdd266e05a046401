"""The hot operations as numba loops, with the names and results of ``kernels.reference``."""
# ruff: noqa: F401  (the dispatch looks operations up by name)

from spit.kernels.cpu import uncompiled
from spit.kernels.cpu.background import BACKGROUND
from spit.kernels.cpu.features import color_patches, gradient_histogram, position_histogram, region_features, scharr
from spit.kernels.cpu.preprocess import diffuse, look_up, saturate
from spit.kernels.cpu.refinement import refine
from spit.kernels.cpu.regions import compose, region_boxes
from spit.kernels.cpu.superpixels import between, superpixel_labels, superpixels
from spit.kernels.cpu.voronoi import nearest_sites
