import io

import numpy as np
import pytest
from PIL import Image

from spit.bench.plot import draw_scaling

CASES = [{"side": side, "batch": batch, "tokenizer_ms": side**2 / 1e5, "features_ms": side**2 / 2e5, "tokens": 1.0}
         for side, batch in ((128, 1), (256, 1), (512, 1), (256, 8))]


def test_a_picture_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    pixels = np.asarray(Image.open(io.BytesIO(draw_scaling(CASES, "Cost"))).convert("RGB"))
    assert pixels.shape[1] > 1000
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
