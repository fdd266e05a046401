import math
import sys

import pytest

from spit.errors import MissingExtra
from spit.evaluation.libraries import library


def test_a_module() -> None:
    assert library("math", "nothing") is math


@pytest.mark.parametrize(("module", "told"), [
    ("scipy.stats", r"a test needs scipy; .*spit-vit\[evaluate\]"), ("skimage.measure", r"scikit-image.*evaluate")])
def test_a_missing_package_has_its_extra(module: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=told):
        library(module, "a test")
