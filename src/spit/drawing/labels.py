"""Label maps as lossless files.

- ``grey16``, up to 65,536 regions: a 16-bit grey PNG; the value is the label.
- ``rgba32``, beyond: a 32-bit colour PNG, ``label = R + 256·G + 256²·B + 256³·(255 − A)``. Up to 2²⁴ regions it is
  opaque, and its RGB is the encoding of COCO's panoptic maps.
- ``npz``: one int32 array, ``labels``.
"""

import io
import zipfile
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from spit.drawing.pictures import encode_png
from spit.errors import ImageError

LabelFormat = Literal["png", "npz"]
GREY_REGIONS = 1 << 16


def encode_labels(labels: Tensor, form: LabelFormat = "png") -> tuple[bytes, str]:
    """Encode a label map as the bytes of a file; also return the encoding.

    Shape:
        labels ``(H, W)``, integers from 0.
    """
    if labels.ndim != 2 or labels.is_floating_point():
        raise ValueError(f"expected integer labels of shape (H, W), got {labels.dtype} of {tuple(labels.shape)}")
    values = labels.cpu().numpy()
    if values.size and not (values.min() >= 0 and values.max() < 2**31):
        raise ValueError(f"expected labels in 0…2³¹ − 1, got {values.min()}…{values.max()}")
    if form == "npz":
        buffer = io.BytesIO()
        np.savez_compressed(buffer, labels=values.astype(np.int32))
        return buffer.getvalue(), "npz"
    if form != "png":
        raise ValueError(f"expected labels as png or npz, got {form!r}")
    if values.max() < GREY_REGIONS:
        return encode_png(Image.fromarray(values.astype(np.uint16))), "grey16"
    packed = np.ascontiguousarray(values.astype("<u4")).view(np.uint8).reshape(*values.shape, 4).copy()
    packed[:, :, 3] = 255 - packed[:, :, 3]
    return encode_png(Image.fromarray(packed)), "rgba32"


def read_labels(path: str | PathLike[str]) -> NDArray[np.int32]:
    """Read a label map from a file that :func:`encode_labels` made.

    Shape:
        ``(H, W)`` int32.

    Raises:
        ImageError: another kind of file, or a damaged one.
    """
    data = Path(path).read_bytes()
    try:
        if data[:2] == b"PK":
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                stored: NDArray[np.int32] = arrays["labels"]
            return stored
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            pixels = np.array(image)
    except (OSError, ValueError, KeyError, SyntaxError, zipfile.BadZipFile) as error:
        raise ImageError(f"{path}: expected a label map that spit wrote, PNG or NPZ, got something else or a damaged "
                         f"file ({error})") from error
    if pixels.ndim == 2 and pixels.dtype in (np.uint16, np.int32):  # a Pillow before 11.3 reads 16 bits as int32
        return pixels.astype(np.int32)
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        pixels[:, :, 3] = 255 - pixels[:, :, 3]
        return pixels.view("<u4")[:, :, 0].astype(np.int32)
    raise ImageError(f"{path}: expected a label map of 16-bit grey or 32-bit colour, got an image of shape "
                     f"{pixels.shape} and {pixels.dtype}")
