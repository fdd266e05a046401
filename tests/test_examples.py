"""Each example runs as written: those with pictures without a warning, those of other frameworks if they are there."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from skimage import data

FOLDER = Path(__file__).parents[1] / "examples"
BATCH = {"dask": "dask.bag", "daft": "daft", "spark": "pyspark"}  # batch_NAME.py and the package that it needs
EXAMPLES = sorted(path for path in FOLDER.glob("*.py")
                  if not path.name.startswith("batch_") and path.stem != "client")  # tests/serve/test_process.py has it


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example: Path, tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-W", "error", str(example)], cwd=tmp_path, capture_output=True, text=True,
                           check=False)
    assert ended.returncode == 0, ended.stderr
    pictures = list((tmp_path / "spit-output").glob("*.png"))
    assert pictures
    for picture in pictures:
        assert picture.name in ended.stdout
        Image.open(picture).verify()


@pytest.mark.parametrize("name", BATCH)
def test_other_frameworks_call_the_operation(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip(BATCH[name])
    if name == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    photos = tmp_path / "photos"
    photos.mkdir()
    Image.fromarray(data.chelsea()).save(photos / "cat.jpg")
    Image.fromarray(data.coffee()).save(photos / "coffee.jpg")
    (photos / "broken.jpg").write_bytes(b"no image")
    ended = subprocess.run([sys.executable, str(FOLDER / f"batch_{name}.py"), str(photos)], cwd=tmp_path,
                           capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    answers = dict(line.split(": ", 1) for line in ended.stdout.splitlines() if ".jpg: " in line)
    assert answers["cat.jpg"] == "Egyptian cat"
    assert answers["coffee.jpg"] == "espresso"
    assert "expected an image" in answers["broken.jpg"]
