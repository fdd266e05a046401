"""Run the notebooks and keep their outputs, without what changes from run to run.

    python tools/run_notebooks.py [FILE ...]      # default: notebooks/*.ipynb
"""

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from ipykernel.kernelspec import write_kernel_spec
from nbclient import NotebookClient
from nbformat import NotebookNode

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
KERNEL = "python3"


def run(path: Path) -> NotebookNode:
    """A notebook with new outputs, from this Python; a cell that fails raises."""
    book = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        write_kernel_spec(Path(folder, "kernels", KERNEL))  # which may not be installed, or be of another Python
        os.environ["JUPYTER_PATH"] = folder
        NotebookClient(book, timeout=300, kernel_name=KERNEL, resources={"metadata": {"path": folder}}).execute()
    for cell in book.cells:
        cell.metadata = NotebookNode()
    book.metadata = NotebookNode(kernelspec={"display_name": "Python 3", "language": "python", "name": KERNEL},
                                 language_info={"name": "python"})
    return book


def main(arguments: list[str]) -> int:
    for path in map(Path, arguments) if arguments else NOTEBOOKS:
        nbformat.write(run(path), path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
