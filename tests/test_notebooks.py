"""Each notebook runs from top to bottom, and keeps small outputs."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 200_000  # bytes of a notebook with its outputs

pytest.importorskip("nbclient", reason="no nbclient: pip install 'spit-vit[dev]'")
pytest.importorskip("ipykernel", reason="no ipykernel: pip install 'spit-vit[dev]'")
sys.path.insert(0, str(ROOT / "tools"))


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # of jupyter's own packages; a cell that fails raises
def test_it_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from run_notebooks import run

    monkeypatch.setenv("JUPYTER_PATH", "")  # which run() sets
    monkeypatch.setenv("PYTHONWARNINGS", "")
    book = run(path)
    assert any(cell.get("outputs") for cell in book.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_kept_and_small(path: Path) -> None:
    import nbformat

    assert path.stat().st_size < LARGEST
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert any("image/jpeg" in output.get("data", {}) for output in outputs)
    assert not any(output["output_type"] == "error" for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)
