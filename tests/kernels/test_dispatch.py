import ast
import inspect
import threading
from importlib import import_module
from pathlib import Path

import pytest
import torch

import spit
from spit import kernels
from spit.kernels import Rules, backend, cpu, reference

PORTABLE = {"exact_sqrt", "level_offsets", "pieces", "region_sizes"}  # without backends
OTHERS = {"BACKENDS", "on_gpu", "SCALE", "Levels", "Rules", "backend", "recorded", "threads", "compile_at_once",
          "compiled"}
BACKENDS = ("reference", "cpu", "triton")
OPERATIONS = sorted(set(kernels.__all__) - PORTABLE - OTHERS)
LABELS, OFFSETS = torch.zeros(1, 2, 2, dtype=torch.int32), torch.tensor([0, 1])


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where the CPU's loops are compiled; test_background has the others."""
    monkeypatch.setattr(cpu.BACKGROUND, "done", True)


@pytest.fixture
def who(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "region_boxes", lambda *_: "reference")
    monkeypatch.setattr(cpu, "region_boxes", lambda *_: "cpu")


@pytest.mark.parametrize("name", ["reference", "cpu", "triton"])
def test_every_backend_has_the_same_operations_with_the_same_arguments(name: str) -> None:
    if name == "triton":
        pytest.importorskip("triton")
    module = import_module(f"spit.kernels.{name}")
    for operation in OPERATIONS:
        assert inspect.signature(getattr(module, operation)) == inspect.signature(getattr(reference, operation))


SOURCES = sorted((Path(spit.__file__).parent).rglob("*.py"))
OUTSIDE = [path for path in SOURCES if "kernels" not in path.parts]


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(Path(spit.__file__).parent)))
def test_nothing_reaches_past_the_dispatch(path: Path) -> None:
    """Code outside the package imports ``spit.kernels``, or ``spit.kernels.numba`` for arrays."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            assert not name.startswith(tuple(f"spit.kernels.{backend}" for backend in BACKENDS)), name


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_goes_to_the_backend_in_force(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[object, ...]] = []
    monkeypatch.setattr(reference, name, lambda *given: seen.append(given))
    operation = getattr(kernels, name)
    arguments = (LABELS, *(f"the {argument}" for argument in list(inspect.signature(operation).parameters)[1:]))
    with backend("reference"):
        operation(*arguments)
    assert seen == [arguments]


@pytest.mark.usefixtures("who")
def test_the_device_decides_unless_a_backend_is_forced() -> None:
    assert kernels.region_boxes(LABELS, OFFSETS) == "cpu"
    with backend("reference"):
        assert kernels.region_boxes(LABELS, OFFSETS) == "reference"
        with backend("numba"):
            assert kernels.region_boxes(LABELS, OFFSETS) == "cpu"
        assert kernels.region_boxes(LABELS, OFFSETS) == "reference"
    assert kernels.region_boxes(LABELS, OFFSETS) == "cpu"


@pytest.mark.usefixtures("who")
def test_an_error_inside_the_block_ends_it() -> None:
    with pytest.raises(KeyError), backend("reference"):
        raise KeyError
    assert kernels.region_boxes(LABELS, OFFSETS) == "cpu"


@pytest.mark.usefixtures("who")
def test_another_thread_is_not_forced() -> None:
    answers: list[object] = []
    with backend("reference"):
        thread = threading.Thread(target=lambda: answers.append(kernels.region_boxes(LABELS, OFFSETS)))
        thread.start()
        thread.join()
    assert answers == ["cpu"]


def test_an_unknown_backend_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"one of reference, numba.*, got 'cupy'"), backend("cupy"):
        pass


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(ValueError, match="no kernels for tensors on meta"):
        kernels.region_boxes(LABELS.to("meta"), OFFSETS)


def test_a_list_of_tensors_is_dispatched_by_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "compose", lambda *_: "cpu")
    assert kernels.compose([LABELS, LABELS], [OFFSETS]) == "cpu"
    with pytest.raises(ValueError, match="no kernels for tensors on meta"):
        kernels.compose([LABELS.to("meta")], [OFFSETS])


def test_arguments_may_be_named() -> None:
    assert kernels.region_boxes(labels=LABELS, offsets=OFFSETS).tolist() == [[0, 0, 2, 2]]


def test_an_unknown_device_is_named_by_superpixels() -> None:
    with pytest.raises(ValueError, match="no kernels for tensors on meta"):
        kernels.superpixels(torch.zeros(1, 3, 4, 4, dtype=torch.int16, device="meta"), Rules())
