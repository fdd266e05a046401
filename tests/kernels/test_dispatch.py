import ast
import inspect
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest
import torch

import spit
from spit import kernels
from spit.kernels import Rules, backend, reference
from spit.kernels import tensors as numba

PORTABLE = {"compose", "exact_sqrt", "level_offsets", "pieces", "region_sizes"}  # without backends
OTHERS = {"BACKENDS", "on_gpu", "SCALE", "Levels", "Rules", "backend", "recorded"}
BACKENDS = ("reference", "tensors", "triton")
OPERATIONS = sorted(set(kernels.__all__) - PORTABLE - OTHERS)
LABELS, OFFSETS = torch.zeros(1, 2, 2, dtype=torch.int32), torch.tensor([0, 1])


@pytest.fixture
def who(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "region_boxes", lambda *_: "reference")
    monkeypatch.setattr(numba, "region_boxes", lambda *_: "numba")


@pytest.mark.parametrize("name", ["tensors", "triton"])
def test_every_backend_has_the_same_operations_with_the_same_arguments(name: str) -> None:
    if name == "triton":
        pytest.importorskip("triton")
    module = import_module(f"spit.kernels.{name}")
    for operation in OPERATIONS:
        own, defined = (inspect.signature(getattr(each, operation)).parameters for each in (module, reference))
        assert [(value.name, value.default) for value in own.values()] == [
            (value.name, value.default) for value in defined.values()]


def test_the_definition_needs_nothing_compiled() -> None:
    code = "import sys, spit.kernels.reference; print({'numba', 'triton', 'spit.kernels.numba'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "set()\n"


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


@pytest.mark.parametrize(("folder", "barred"), [
    ("reference", ("numba", "triton", "tensors")), ("triton", ("reference",)),
    ("numba", ("reference", "triton", "tensors")),
])
def test_backends_are_independent(folder: str, barred: tuple[str, ...]) -> None:
    for path in (Path(kernels.__file__).parent / folder).glob("*.py"):
        modules = {node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)}
        assert not any((module or "").startswith(f"spit.kernels.{name}") for module in modules for name in barred), path


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
    assert kernels.region_boxes(LABELS, OFFSETS) == "numba"
    with backend("reference"):
        assert kernels.region_boxes(LABELS, OFFSETS) == "reference"
        with backend("numba"):
            assert kernels.region_boxes(LABELS, OFFSETS) == "numba"
        assert kernels.region_boxes(LABELS, OFFSETS) == "reference"
    assert kernels.region_boxes(LABELS, OFFSETS) == "numba"


@pytest.mark.usefixtures("who")
def test_an_error_inside_the_block_ends_it() -> None:
    with pytest.raises(KeyError), backend("reference"):
        raise KeyError
    assert kernels.region_boxes(LABELS, OFFSETS) == "numba"


@pytest.mark.usefixtures("who")
def test_another_thread_is_not_forced() -> None:
    answers: list[object] = []
    with backend("reference"):
        thread = threading.Thread(target=lambda: answers.append(kernels.region_boxes(LABELS, OFFSETS)))
        thread.start()
        thread.join()
    assert answers == ["numba"]


def test_an_unknown_backend_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"one of reference, numba.*, got 'cupy'"), backend("cupy"):
        pass


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(ValueError, match="no kernels for tensors on meta"):
        kernels.region_boxes(LABELS.to("meta"), OFFSETS)



def test_arguments_may_be_named() -> None:
    assert kernels.region_boxes(labels=LABELS, offsets=OFFSETS).tolist() == [[0, 0, 2, 2]]


def test_an_unknown_device_is_named_by_superpixels() -> None:
    with pytest.raises(ValueError, match="no kernels for tensors on meta"):
        kernels.superpixels(torch.zeros(1, 3, 4, 4, dtype=torch.int16, device="meta"), Rules())
