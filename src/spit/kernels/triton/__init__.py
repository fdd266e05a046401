"""The hot operations as Triton kernels, with the names and results of ``kernels.reference``."""
# ruff: noqa: F401  (the dispatch looks operations up by name)

from spit.kernels.portable import saturate
from spit.kernels.preprocess import in_turn
from spit.kernels.sites import draw_sites
from spit.kernels.tensors import between  # its tensors are on the CPU
from spit.kernels.triton.features import color_patches, region_features, scharr
from spit.kernels.triton.histograms import gradient_histogram, position_histogram
from spit.kernels.triton.preprocess import diffuse, look_up
from spit.kernels.triton.refinement import refine
from spit.kernels.triton.regions import region_boxes
from spit.kernels.triton.superpixels import superpixel_labels, superpixels
from spit.kernels.triton.tree import cut_tree, graph_tree, grid_tree, recut, region_tree, tree_labels
from spit.kernels.triton.voronoi import nearest_sites

superpixel_features = in_turn(look_up, diffuse)
