"""The hot operations as Triton kernels, with the names and results of ``kernels.reference``."""
# ruff: noqa: F401  (the dispatch looks operations up by name)

from spit.kernels.gpu.features import color_patches, region_features, scharr
from spit.kernels.gpu.histograms import gradient_histogram, position_histogram
from spit.kernels.gpu.preprocess import diffuse, look_up
from spit.kernels.gpu.refinement import refine
from spit.kernels.gpu.regions import compose, region_boxes
from spit.kernels.gpu.superpixels import superpixel_labels, superpixels
from spit.kernels.gpu.voronoi import nearest_sites
from spit.kernels.reference.preprocess import saturate  # plain torch, which runs on any device
from spit.kernels.reference.superpixels import between  # its tensors are on the CPU
