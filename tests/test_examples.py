"""Each example runs as written, without a warning, and writes the picture that it names."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = sorted(path for path in (Path(__file__).parents[1] / "examples").glob("*.py")
                  if path.stem != "client")  # which needs a server: tests/serve/test_process.py


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
