# %% [markdown]
# # Superpixels for those who know scikit-image
#
# `spit.superpixels(image, n=600)` returns what `skimage.segmentation.slic` returns: an (H, W) array of labels from 1.
# Run this file as it is (`python examples/superpixels.py`), or cell by cell as a notebook (VS Code, Jupytext).

# %%
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from skimage import color, data, measure, segmentation

import spit

image = data.coffee()  # (400, 600, 3) uint8; floats in [0, 1] and grey images work too
labels = spit.superpixels(image, n=600)
print(labels.shape, labels.dtype, labels.min(), labels.max())

# %% [markdown]
# All of scikit-image works on these labels: regions, mean colours, boundaries.

# %%
regions = measure.regionprops(labels, intensity_image=image)
largest = max(regions, key=lambda region: region.area)
print(f"{len(regions)} regions; the largest: {largest.area:.0f} pixels, mean colour {largest.intensity_mean.round()}")
mean_colors = color.label2rgb(labels, image, kind="avg", bg_label=-1)
outlined = segmentation.mark_boundaries(image, labels, color=(1, 1, 1))

# %% [markdown]
# How much of the image do the mean colours keep? R² beside SLIC's at the count that SLIC gives, and the time of a
# second call (the first one compiles).


# %%
def explained(image: np.ndarray, labels: np.ndarray) -> float:
    """R²: the share of the colours' variance that lies between regions."""
    error = (image - color.label2rgb(labels, image, kind="avg", bg_label=-1).astype(float)) ** 2
    return float(1 - error.sum() / ((image - image.mean((0, 1))) ** 2).sum())


count = len(np.unique(segmentation.slic(image, n_segments=690, start_label=1)))
for name, method in {
    "SLIC": lambda: segmentation.slic(image, n_segments=690, start_label=1),
    "spit": lambda: spit.superpixels(image, n=count),
}.items():
    start = time.perf_counter()
    found = method()
    milliseconds = 1000 * (time.perf_counter() - start)
    print(f"{name}: {len(np.unique(found))} regions, R² {explained(image, found):.3f}, {milliseconds:.0f} ms")

# %% [markdown]
# Any count from one hierarchy: `hier.at(n)` lies between two levels and never crosses a boundary of the coarser one.

# %%
pixels = spit.SuperpixelTokenizer(features="saturated", similarity="variance", self_loop="none").hierarchy(
    torch.from_numpy(image).movedim(-1, 0))
columns = [color.label2rgb(pixels.at(n).labels[0].numpy() + 1, image, kind="avg") for n in (50, 200, 1000)]
folder = Path("spit-output")
folder.mkdir(exist_ok=True)
top = np.concatenate([image, (255 * outlined).astype(np.uint8), mean_colors], axis=1)
bottom = np.concatenate(columns, axis=1)
Image.fromarray(np.concatenate([top, bottom], axis=0)).save(folder / "superpixels.png")
print(f"{folder / 'superpixels.png'}: the photo, its 600 superpixels and their mean colours; "
      "below, 50, 200 and 1000 regions of one hierarchy")
