"""The hot operations as compiled loops on arrays, with the names and results of ``kernels.reference``.

Nothing here imports torch. ``kernels.tensors`` gives the same functions for tensors on the CPU.
"""

from spit.kernels.numba.features import color_patches, region_features, scharr
from spit.kernels.numba.histograms import gradient_histogram, position_histogram
from spit.kernels.numba.preprocess import diffuse, look_up, saturate, superpixel_features
from spit.kernels.numba.refinement import refine
from spit.kernels.numba.regions import region_boxes
from spit.kernels.numba.superpixels import between, superpixel_labels, superpixels
from spit.kernels.numba.tree import cut_tree, graph_tree, grid_tree, recut, region_tree, tree_colors, tree_labels
from spit.kernels.numba.voronoi import draw_sites, nearest_sites

__all__ = [
    "between", "color_patches", "cut_tree", "diffuse", "draw_sites", "gradient_histogram", "graph_tree", "grid_tree",
    "look_up", "nearest_sites", "position_histogram", "recut", "refine", "region_boxes", "region_features",
    "region_tree", "saturate", "scharr", "superpixel_features", "superpixel_labels", "superpixels", "tree_colors",
    "tree_labels",
]
