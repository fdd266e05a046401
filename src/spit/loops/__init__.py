"""The arithmetic of τ and φ on arrays of one image, as compiled loops; nothing here imports torch.

``spit.kernels.cpu`` calls these loops for batches of tensors, and ``spit.runtime`` for arrays, so both give the same
bits.
"""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
