"""Every snippet of the README runs as it is written, in a folder that holds the files it names."""

import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data

from spit.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SECTIONS = ["Superpixels", "Tokens", "Classify", "Your own backbone", "Explain", "Segment", "Fine-tune"]
MOST_LINES = 170
SNIPPETS = dict(re.findall(rf"\n## ({'|'.join(SECTIONS)})\n.*?```python\n(.*?)```", README, re.DOTALL))
BLOCKS = [[line for line in block.splitlines() if line.startswith("spit ")]
          for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)]
QUICK = ["--set", "data.size=64", "--set", "optimization.epochs=1", "--device", "cpu"]  # beside what is written
INLINE = re.findall(r"^`(spit [a-z][^`]*)`, or in Python", README, re.MULTILINE)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A photo, a folder of photos, photos of two classes, and arrays."""
    monkeypatch.chdir(tmp_path)
    photo = Image.fromarray(data.chelsea()).resize((113, 75))
    photo.save("photo.jpg")
    np.save("slide.npy", np.array(photo))
    np.save("stack.npy", np.stack([np.array(photo)[..., 0]] * 4))
    Path("photos").mkdir()
    photo.crop((0, 0, 60, 50)).save("photos/other.png")
    for name, box in {"cat": (0, 0, 40, 40), "dog": (40, 20, 100, 70)}.items():
        for part, numbers in {"train": range(8), "test": range(8, 10)}.items():
            Path("classes", part, name).mkdir(parents=True)
            for i in numbers:
                photo.crop(box).rotate(10 * i).save(f"classes/{part}/{name}/{i}.jpg")
    return tmp_path


def test_all_are_found() -> None:
    assert list(SNIPPETS) == SECTIONS
    assert README.count("```python") == len(SNIPPETS)
    assert [[command.split()[1] for command in block] for block in BLOCKS if block] == [
        ["train", "classify", "evaluate"]]
    assert [command.split()[1] for command in INLINE] == ["classify", "explain", "segment"]


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.usefixtures("restored_parts")
def test_snippet(name: str, files: Path) -> None:
    if name == "Your own backbone":
        pytest.importorskip("transformers", reason="no transformers: pip install 'spit-vit[transformers]'")
    torch.manual_seed(0)
    names: dict[str, object] = {}
    exec(compile(SNIPPETS[name], f"README.md, {name}", "exec"), names)
    if name == "Fine-tune":
        assert torch.isfinite(names["loss"])  # type: ignore[arg-type]


def test_classification_in_python_is_the_commands(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(SNIPPETS["Classify"], "README.md, Classify", "exec"), {})
    printed = capsys.readouterr().out.split()
    assert main(["classify", "photo.jpg"]) == 0
    assert capsys.readouterr().out.split()[6:] == printed  # beyond "photo.jpg (spit_tiny_16, central square, N tokens)"


@pytest.mark.parametrize("block", [INLINE, *filter(None, BLOCKS)], ids=lambda block: block[0].split()[1])
def test_commands_one_after_another(block: list[str], files: Path) -> None:
    for command in block:
        quick = QUICK if command.startswith("spit train") else []
        assert main([*shlex.split(command, comments=True)[1:], *quick]) == 0, command


def test_make_clean_works_in_a_plain_clone(tmp_path: Path) -> None:
    """Git keeps no empty folders: what the recipe names must be there."""
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    for name in ("src", "tests", "benchmarks"):
        (tmp_path / name / "__pycache__").mkdir(parents=True)
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert not list(tmp_path.rglob("__pycache__"))
