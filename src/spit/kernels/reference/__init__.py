"""The definition of every hot operation in plain torch, to be read beside the paper.

The other backends are compiled versions of these files with the same names and the same partitions, bit for bit.
That is possible because superpixel features and region sums are integers, the curves of App. B are tables, and
the weights that are compared are float32 numbers computed in one fixed order.
"""

from spit.kernels.portable import saturate
from spit.kernels.preprocess import in_turn
from spit.kernels.reference.features import (
    color_patches,
    gradient_histogram,
    position_histogram,
    region_features,
    scharr,
)
from spit.kernels.reference.preprocess import diffuse, look_up
from spit.kernels.reference.refinement import refine
from spit.kernels.reference.regions import region_boxes
from spit.kernels.reference.superpixels import between, superpixel_labels, superpixels
from spit.kernels.reference.tree import cut_tree, graph_tree, grid_tree, recut, region_tree, tree_labels
from spit.kernels.reference.voronoi import nearest_sites
from spit.kernels.sites import draw_sites

__all__ = [
    "between", "color_patches", "cut_tree", "diffuse", "draw_sites", "gradient_histogram", "graph_tree", "grid_tree",
    "look_up", "nearest_sites", "position_histogram", "recut", "refine", "region_boxes", "region_features",
    "region_tree", "saturate", "scharr", "superpixel_features", "superpixel_labels", "superpixels", "tree_labels",
]

superpixel_features = in_turn(look_up, diffuse)
