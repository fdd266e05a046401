"""Label maps with everything that makes polygons hard: holes, diagonals, single pixels, gaps, many pieces."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray


def _grow(parts: tuple[int, int, int, int, int, float]) -> NDArray[np.int64]:
    height, width, kinds, side, seed, noise = parts
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, kinds, (-(-height // side), -(-width // side)))
    labels = np.kron(blocks, np.ones((side, side), np.int64))[:height, :width]
    return np.where(rng.random(labels.shape) < noise, rng.integers(0, kinds + 2, labels.shape), labels)


LABELS = st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 6), st.integers(1, 6),
                   st.integers(0, 2**32), st.sampled_from([0, 0.05, 0.3])).map(_grow)
