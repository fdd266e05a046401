"""Loops compile once, into a cache."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from numba import njit

from spit.kernels.numba import compilation

CODE = """
import numpy, sys, spit
from spit.kernels.numba.compilation import in_cache
from spit.kernels.numba.tree_rounds import merge_all
print(in_cache(merge_all), end=" ")
spit.superpixels(numpy.zeros((20, 20, 3)), n=9)
print(in_cache(merge_all), "torch" in sys.modules)
"""


def test_the_first_call_fills_the_cache(tmp_path: Path) -> None:
    run = [subprocess.run([sys.executable, "-c", CODE], env={"NUMBA_CACHE_DIR": str(tmp_path),
                                                             "PYTHONPATH": ":".join(sys.path)},
                          check=True, capture_output=True, text=True).stdout.split() for _ in range(2)]
    assert run == [["False", "True", "False"], ["True", "True", "False"]]


def test_loops_compile_without_a_folder_to_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(cache: bool = False, **options: Any) -> Any:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(compilation, "njit", refuse)
    loop = compilation.compiled(lambda number: number + 1)
    assert loop(41) == 42
    assert not compilation.in_cache(loop)
