"""A fresh install: plain operations answer while another process compiles."""

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spit import kernels
from spit.kernels import cpu
from spit.kernels.cpu import background, uncompiled
from spit.kernels.cpu.background import SERVED, Background
from spit.kernels.numba import compilation

LABELS, OFFSETS = torch.zeros(1, 2, 2, dtype=torch.int32), torch.tensor([0, 1])
OPERATIONS = ("between", "color_patches", "compose", "diffuse", "gradient_histogram", "look_up", "nearest_sites",
              "position_histogram", "refine", "region_boxes", "region_features", "saturate", "scharr",
              "superpixel_labels", "superpixels")
fcntl = pytest.importorskip("fcntl")


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Background:
    """A machine where nothing is compiled yet; ``start`` takes the lock, as the process would, and compiles nothing."""
    held = []

    def start(stamp: Path) -> bool:
        held.append(background._lock_file(stamp).open("w"))
        fcntl.flock(held[0], fcntl.LOCK_EX)
        return False

    monkeypatch.setattr(background, "start", start)
    yield Background(str(tmp_path))
    for file in held:
        file.close()


def end(fresh: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends, and its lock with it."""
    monkeypatch.setattr(background, "_locked", lambda _: False)


def test_plain_operations_serve_until_the_stamp_is_there(fresh: Background) -> None:
    assert not fresh.serves(10)
    assert not fresh.serves(10)
    fresh.stamp.touch()
    assert fresh.serves(10)
    assert fresh.done


def test_a_stamp_from_before_needs_no_process(fresh: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "start", lambda _: pytest.fail("started"))
    fresh.stamp.touch()
    assert fresh.serves(10)


def test_a_process_that_fails_is_not_waited_for(fresh: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not fresh.serves(10)
    end(fresh, monkeypatch)
    assert fresh.serves(10)


@pytest.mark.parametrize("error", [PermissionError, FileNotFoundError])
def test_a_process_that_cannot_be_started(fresh: Background, monkeypatch: pytest.MonkeyPatch,
                                          error: type[OSError]) -> None:
    def refuse(_: Path) -> bool:
        raise error

    monkeypatch.setattr(background, "start", refuse)
    assert fresh.serves(10)


def test_a_large_first_call_compiles_for_itself(fresh: Background, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "start", lambda _: pytest.fail("started"))
    assert fresh.serves(SERVED + 1)


def test_many_calls_compile_for_themselves(fresh: Background) -> None:
    assert not fresh.serves(SERVED)
    assert fresh.serves(1)


def test_without_a_cache_plain_operations_serve_as_long_as_they_may() -> None:
    none = Background(None)
    assert not none.serves(SERVED)
    assert none.serves(1)


def test_one_process_for_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Process:
        def __init__(self, command: list[str], **options: object) -> None:
            started.append(os.dup(options["pass_fds"][0]))  # the process has the lock's file open

        def wait(self) -> None:
            pass

    monkeypatch.setattr(background, "_Detached", Process)
    stamp = tmp_path / "spit.compiled"
    assert not background.start(stamp)
    assert background._locked(stamp)
    assert not background.start(stamp)
    assert len(started) == 1
    os.close(started[0])
    assert not background._locked(stamp)


@pytest.mark.parametrize("executable", [None, "", "/usr/bin/uwsgi"])
def test_no_process_where_the_interpreter_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                       executable: str | None) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert background.start(tmp_path / "spit.compiled")


def test_loops_compile_without_a_folder_to_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import njit

    def refuse(**options: object) -> Callable[..., object]:
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(compilation, "njit", refuse)
    loop = compilation.compiled(lambda x: x + 1)
    assert loop(1) == 2
    assert loop.stats.cache_path is None


class TestDispatch:
    @pytest.fixture(autouse=True)
    def who(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module, name in ((uncompiled, "uncompiled"), (cpu, "cpu")):
            monkeypatch.setattr(module, "region_boxes", lambda *_, name=name: (name, torch.get_num_threads()))
        monkeypatch.setattr(cpu, "BACKGROUND", Background(None))

    def test_plain_operations_serve_on_one_thread(self) -> None:
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            assert kernels.region_boxes(LABELS, OFFSETS) == ("uncompiled", 1)
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(before)

    def test_a_backend_that_is_forced_serves(self) -> None:
        with kernels.backend("numba"):
            assert kernels.region_boxes(LABELS, OFFSETS)[0] == "cpu"

    def test_compiled_loops_serve_at_once_if_asked(self) -> None:
        assert not kernels.compiled(LABELS)
        with kernels.backend("numba"):
            assert kernels.compiled(LABELS)
        kernels.compile_at_once()
        assert kernels.compiled(LABELS)
        assert kernels.region_boxes(LABELS, OFFSETS)[0] == "cpu"


class TestUncompiled:
    @settings(deadline=None, max_examples=40)
    @given(st.integers(1, 70), st.integers(1, 40), st.integers(2, 17), st.sampled_from([0, 0.01, 0.025, 0.04, 0.3]),
           st.integers(0, 100))
    def test_histograms_have_the_bits_of_the_loops(self, height: int, width: int, bins: int, sigma: float,
                                                   seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        labels = torch.randint(0, 3, (2, height, width), generator=random, dtype=torch.int32)
        offsets = torch.tensor([0, 3, 6])
        gradients = 2.2 * torch.rand(2, 2, height, width, generator=random) - 1.1
        for name, data in (("gradient_histogram", (gradients, labels)), ("position_histogram", (labels,))):
            plain, loop = (getattr(module, name)(*data, offsets, bins, sigma) for module in (uncompiled, cpu))
            assert torch.equal(plain, loop)

    def test_it_has_every_operation(self) -> None:
        for name in OPERATIONS:
            assert inspect.signature(getattr(uncompiled, name)) == inspect.signature(getattr(cpu, name))


FRESH = """
import time, torch, spit
from spit import kernels
from spit.kernels.cpu import BACKGROUND, background
from spit.kernels.numba import contraction, features, forest, histograms, preprocess, refinement, regions, voronoi

images = torch.randint(0, 256, (1, 3, 40, 40), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
tokenizer = spit.SuperpixelTokenizer(levels=2, max_tokens=20, refine=1, features="saturated", merge_threshold=0.01)
calls = (lambda: tokenizer(images).labels, lambda: tokenizer.hierarchy(images).at(30).labels,
         lambda: tokenizer.hierarchy(images).at(1000).labels, lambda: spit.VoronoiTokenizer(9)(images).labels)
extractors = spit.FeatureExtractor(), spit.FeatureExtractor(fill="image")
calls += tuple(lambda extract=extract: extract(images, tokenizer(images)).values for extract in extractors)
first = [call() for call in calls]
assert not BACKGROUND.done
while not BACKGROUND.stamp.exists():
    assert background._locked(BACKGROUND.stamp) or BACKGROUND.stamp.exists()  # it runs, or has ended
    time.sleep(0.1)
kernels.compile_at_once()
for answer, call in zip(first, calls, strict=True):
    assert torch.equal(answer, call())
for module in (contraction, features, forest, histograms, preprocess, refinement, regions, voronoi):
    for name, loop in vars(module).items():
        if hasattr(loop, "stats") and loop.stats.cache_path is not None and loop.signatures:
            print(name, sum(loop.stats.cache_misses.values()))
"""


def test_a_fresh_install_answers_at_once_and_compiles_everything_elsewhere(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", FRESH], capture_output=True, text=True, check=False,
                          env=environment)
    assert done.returncode == 0, done.stderr
    misses = dict(line.split() for line in done.stdout.splitlines())
    assert "link_pixels" in misses
    assert "sample_colors" in misses
    assert "_four_bins" in misses
    assert set(misses.values()) == {"0"}, misses
    assert [path.suffix for path in tmp_path.rglob("spit-*")].count(".compiled") == 1
