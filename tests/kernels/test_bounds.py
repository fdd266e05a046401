"""``make boundscheck`` runs the loops with bounds checked; this test says whether they are."""

import os

import numpy as np
import pytest

from spit.kernels.numba.regions import gather


@pytest.mark.skipif(os.environ.get("NUMBA_BOUNDSCHECK") != "1", reason="runs in make boundscheck")
def test_an_index_outside_an_array_is_an_error() -> None:
    values, places, out = np.zeros(2, np.int32), np.array([0, 7], np.int32), np.zeros(2, np.int32)
    with pytest.raises(IndexError):
        gather(values, places, out)
