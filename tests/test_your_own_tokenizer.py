"""docs/tutorials/your-own-tokenizer.md: its code runs as it is written, in a folder that holds the files it names."""

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from skimage import data

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "tutorials" / "your-own-tokenizer.md").read_text()
MODULE, *BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
COMMANDS = re.findall(r"^spit .*", "\n".join(re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)), re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restored_parts: None) -> Path:
    """The module, a photo and photos of two classes; what the guide registers is gone after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_tokenizers", raising=False)
    importlib.invalidate_caches()
    Path("my_tokenizers.py").write_text(MODULE)
    photo = Image.fromarray(data.chelsea()).resize((113, 75))
    photo.save("photo.jpg")
    for name in ("left", "right"):
        Path("classes/train", name).mkdir(parents=True)
        for index in range(8):
            crop = photo.crop((0, 0, 50, 50) if name == "left" else (50, 20, 110, 70))
            crop.save(f"classes/train/{name}/{index}.jpg")
    return tmp_path


def test_it_runs(folder: Path) -> None:
    names: dict[str, object] = {}
    for index, block in enumerate(BLOCKS):
        exec(compile(block, f"docs/tutorials/your-own-tokenizer.md, block {index + 2}", "exec"), names)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for command in COMMANDS:
        done = subprocess.run([sys.executable, "-m", "spit.cli", *shlex.split(command)[1:]], env=environment,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    refused = subprocess.run([sys.executable, "-m", "spit.cli", "classify", "photo.jpg", "--model", "slic_model"],
                             env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "its tokenizer 'slic' is not registered" in refused.stderr.replace("\n", " ")
    assert "--plugin MODULE" in refused.stderr.replace("\n", " ")


def test_the_test_finds_all_of_it() -> None:
    assert len(BLOCKS) == 3
    assert [command.split()[3] for command in COMMANDS] == ["tokenize", "classify", "classify", "train"]
