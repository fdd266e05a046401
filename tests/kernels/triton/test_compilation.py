"""Every kernel compiles for NVIDIA and AMD, for the sizes that Triton specialises, on a machine without either.

The interpreter takes Python as it comes; the compiler does not. It turns an argument that is 1 into a
constant, and one that 16 divides into a promise, so a 1 × 1 image is another program than a 16 × 16 one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from math import inf

import torch

driver, size = sys.argv[1], int(sys.argv[2])
if driver == "hip":
    torch.version.hip = "6.4"  # what torch's build for AMD says

import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

if sys.argv[1] == "hip":
    torch.version.hip = "7.0"  # as ROCm's torch says
from spit.kernels import Rules
from spit.kernels import triton as backend


class Driver:
    '''One device that compiles and never runs.'''

    def __init__(self, target):
        self.get_current_target = lambda: target
        self.get_current_device = lambda: 0
        self.get_current_stream = lambda device: 0


target = GPUTarget("cuda", 90, 32) if driver == "cuda" else GPUTarget("hip", "gfx942", 64)
triton.runtime.driver.set_active(Driver(target))
JITFunction.__getitem__ = lambda self, grid: lambda *args, **options: kernels.add(
    (self.__name__, self.warmup(*args, grid=grid, **options).hash))
kernels = set()

features = torch.zeros(1, 3, size, size, dtype=torch.int16)
backend.superpixel_labels(features, Rules(levels=4))
backend.superpixel_labels(features, Rules(levels=2, compactness=0.1, similarity="euclidean", loop_clip=inf))
backend.superpixel_labels(features[:, :1], Rules(levels=2, loop_clip=None))
backend.superpixel_labels(features, Rules(levels=2, similarity="variance", loop_clip=None))
backend.diffuse(features, torch.zeros(1, dtype=torch.int32), 1)
backend.superpixel_labels(torch.cat([features, features], 1)[:, :5], Rules(levels=2, merge_threshold=0.1))
large = features.repeat(2**14, 1, 1, 1)  # wide strips
backend.diffuse(large, torch.zeros(1, dtype=torch.int32), 4)
sys.modules["spit.kernels.triton.superpixels"].Graph(large, Rules()).link_pixels()
images, labels, offsets = torch.zeros(1, 3, size, size), features[:, 0].int(), torch.tensor([0, 1])
boxes = torch.tensor([[0, 0, size, size]]).int()
backend.look_up(images.byte(), torch.zeros(3, 256))
backend.look_up(images[:, :1].byte(), torch.zeros(1, 256, dtype=torch.int16))
backend.scharr(images)
backend.scharr(images[:, :1].byte())
backend.refine(labels, offsets, images.byte(), 1)
backend.region_boxes(labels, offsets)
backend.color_patches(images, labels, offsets, boxes, 16)
backend.color_patches(images[:, :1], labels, offsets, boxes, 1)
for sigma in (0.0, 0.025, 0.05):
    backend.position_histogram(labels, offsets, 16, sigma, boxes)
    backend.gradient_histogram(images[:, :2], labels, offsets, 16, sigma, boxes)
backend.region_features(images.byte(), torch.zeros(3, 256), images[:, :2], labels, offsets, boxes, boxes,
                        5, False, (17, 0.1), (4, 0.1))
voronoi = sys.modules["spit.kernels.triton.voronoi"]
voronoi.settle = lambda sites, labels: labels  # nothing ran: there is nothing to repair
backend.nearest_sites(torch.zeros(1, 1, 2, dtype=torch.int32), size, size)
from spit.backbone.kernels import attend, attend_backward
for dtype in (torch.bfloat16, torch.float16):
    packed = torch.zeros(size, 3, 3, 64, dtype=dtype)
    answer, sums = attend(packed, offsets.int(), size)
    attend_backward(answer, packed, offsets.int(), size, answer, sums)
print(*sorted({name for name, _ in kernels}))
"""

KERNELS = {
    "_add_pixels", "_attend", "_boxes", "choose", "_color_patches", "count_roots", "_diffuse", "_flip",
    "_gradient_histogram", "link_pixels", "_look_up", "_mean_slopes", "_move", "_nearest", "number_roots", "_owners",
    "_position_histogram", "region_points", "relabel", "_scharr", "shorten", "_slopes_of_keys",
    "_slopes_of_queries", "start_alone", "sum_pixels", "sum_regions", "_tabulate", "unite_edges", "weigh_edges",
}


@pytest.mark.parametrize(("driver", "size"), [("cuda", 1), ("hip", 16)])  # ("cuda", 16) is what every GPU test runs
def test_every_kernel_compiles(driver: str, size: int, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    ended = subprocess.run([sys.executable, "-c", SCRIPT, driver, str(size)], capture_output=True, text=True,
                           env=environment | {"TRITON_CACHE_DIR": str(tmp_path)}, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert set(ended.stdout.split()) == KERNELS
