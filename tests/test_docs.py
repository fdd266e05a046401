"""The snippets and commands of docs/ run as they are written, and every command named in a page has its flags."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image
from skimage import data
from typer.main import get_command

from interop.published.test_loader import model, release
from interop.test_timm import vit
from spit.cli import main
from spit.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
TESTED = ("attribution", "published", "segmentation")  # your-own-tokenizer.md and the README have tests of their own
NEEDED = {"tutorials/serve": "fastapi", "tutorials/corpus": "pyarrow", "tutorials/export": "onnxruntime",
          "backbones": "transformers", "guarantees": "cv2"}
WALKED = ("quickstart", "models", "tutorials/superpixels", "tutorials/explain", "tutorials/masks",
          "tutorials/fine-tune", "large", *NEEDED, "training")  # from top to bottom, code and commands in turn
COMMAND = re.compile(r"^spit [a-z].*|(?<=`)spit [a-z][^`]*(?=`)", re.MULTILINE)
BENCHMARK = re.compile(r"python (benchmarks/\w+\.py)([^`\n]*)")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / f"{page}.md").read_text(), re.DOTALL)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the pages name, small."""
    monkeypatch.chdir(tmp_path)
    photo = Image.fromarray(data.chelsea()).resize((96, 64))
    Path("photos").mkdir()
    for name in ("cat.jpg", "dog.jpg", "a.jpg", "b.jpg", "c.jpg", "photo.jpg", "photos/other.png", "photos/cat.jpg"):
        photo.rotate(len(name)).save(name)
    np.save("slide.npy", np.array(photo))
    for kind in ("cat", "dog"):
        Path("classes", kind).mkdir(parents=True)
        for index in range(2):
            photo.rotate(index).save(f"classes/{kind}/{index}.jpg")
    for folder in ("images", "ground_truth_mask"):
        Path("ECSSD", folder).mkdir(parents=True)
    photo.save("ECSSD/images/1.jpg")
    photo.convert("L").point(lambda grey: 255 * (grey > 128)).save("ECSSD/ground_truth_mask/1.png")
    torch.save(release(model("spit_small_16")), "SPiT-S16.pth")
    safetensors.torch.save_file(vit(patch=16, grid=14, classes=9), "deit_tiny_patch16_224.safetensors")
    return tmp_path


@pytest.mark.parametrize("page", TESTED)
def test_snippets(page: str, files: Path) -> None:
    [snippet] = blocks(page, "python")
    names: dict[str, Any] = {"images": torch.rand(2, 3, 64, 64)}
    exec(compile(snippet, page, "exec"), names)


@pytest.mark.parametrize("page", ["published", "segmentation"])
def test_commands(page: str, files: Path) -> None:
    [block] = blocks(page, "sh")
    for line in block.splitlines():
        assert main(shlex.split(line, comments=True)[1:]) == 0, line


@pytest.mark.parametrize("page", WALKED)
def test_walk(page: str, files: Path) -> None:
    """A page's code and commands as a reader runs them, one after another."""
    if page in NEEDED:
        pytest.importorskip(NEEDED[page])
    names: dict[str, Any] = {}
    text = (ROOT / "docs" / f"{page}.md").read_text()
    found = re.findall(r"^```(python|sh)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found
    for language, block in found:
        if language == "python":
            exec(compile(block, page, "exec"), names)
            continue
        for line in block.splitlines():
            assert main(shlex.split(line, comments=True)[1:]) == 0, line


def test_every_tutorial_is_walked() -> None:
    tutorials = {f"tutorials/{path.stem}" for path in (ROOT / "docs/tutorials").glob("*.md")}
    assert tutorials - {"tutorials/your-own-tokenizer"} <= set(WALKED)


def test_the_page_of_corpora(files: Path) -> None:
    pytest.importorskip("pyarrow")
    [commands] = blocks("batch", "sh")
    for line in commands.splitlines():
        assert main(shlex.split(line)[1:]) == 0, line
    for snippet in blocks("batch", "python"):
        exec(compile(snippet, "batch", "exec"), {})


def test_every_guarantee_has_its_test() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", (ROOT / "docs/guarantees.md").read_text())
    assert named
    for file, test in named:
        assert any(f"def {test}(" in path.read_text() for path in (ROOT / "tests").rglob(file)), test


def known_flags(words: list[str]) -> set[str] | None:
    """The flags of the verb that a command line names; None if it names none."""
    command: Any = get_command(app)
    for word in words:
        commands = getattr(command, "commands", None)
        if commands is None:
            break
        if word not in commands:
            return None
        command = commands[word]
    return {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_have_their_flags(page: Path) -> None:
    for line in COMMAND.findall(page.read_text()):
        words = re.sub(r"\s#.*", "", line).split()[1:]
        if words[0] == "--plugin":
            words = words[2:]
        flags = known_flags([word for word in words if not word.startswith("-")])
        assert flags is not None or words[0] in ("VERB",), f"{page.name}: no such command: {line}"
        for word in words:
            flag = re.match(r"--?[a-z][a-z-]*", word)
            assert flag is None or flag[0] in (flags or ()), f"{page.name}: {word} in: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_benchmarks_have_their_flags(page: Path) -> None:
    shared = (ROOT / "benchmarks/provenance.py").read_text()
    for script, arguments in BENCHMARK.findall(page.read_text()):
        known = (ROOT / script).read_text() + shared
        for flag in re.findall(r"(?<!\S)--[a-z-]+", re.sub(r"\s#.*", "", arguments)):
            assert f'"{flag}"' in known, f"{page.name}: {flag} in: python {script}{arguments}"
