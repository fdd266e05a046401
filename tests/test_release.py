"""The sdist has all that the wheel needs, and the wheel answers offline in an environment of its own."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import spit

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_{}(sys.argv[1]))"


def run(*command: object, cwd: Path, **environment: str) -> str:
    ended = subprocess.run([str(word) for word in command], cwd=cwd, env={**os.environ, **environment},
                           capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: a build leaves folders behind."""
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("sdist")
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    return folder / run(sys.executable, "-c", BUILD.format("sdist"), folder, cwd=source).splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [source] = folder.iterdir()
    return folder / run(sys.executable, "-c", BUILD.format("wheel"), folder, cwd=source).splitlines()[-1]


def test_names_and_versions(wheel: Path) -> None:
    assert wheel.name == f"spit_vit-{spit.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        [metadata] = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    assert "\nName: spit-vit\n" in text
    assert f"\nVersion: {spit.__version__}\n" in text
    assert "\nLicense-Expression: Apache-2.0\n" in text


def test_the_wheel_has_weights_classes_recipes_and_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for end in ("spit/py.typed", "spit/data/imagenet_classes.tsv", "/smoke.toml"):
        assert any(name.endswith(end) for name in names), end
    for path in (ROOT / "src/spit/checkpoints").glob("*/*"):
        assert path.relative_to(ROOT / "src").as_posix() in names
    assert len([name for name in names if name.endswith(".safetensors")]) == 3  # weights, prototypes, token head
    assert not any(name.startswith(("tests/", "tools/", "docs/")) for name in names)
    assert wheel.stat().st_size < 20_000_000  # one model of 13.5 MB


@pytest.fixture(scope="module")
def models_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    shutil.copytree(ROOT / "models", folder / "source", ignore=shutil.ignore_patterns("*.egg-info", "build"))
    return folder / run(sys.executable, "-c", BUILD.format("wheel"), folder, cwd=folder / "source").splitlines()[-1]


def test_the_wheels_alone_make_the_demo_offline(wheel: Path, models_wheel: Path, tmp_path: Path) -> None:
    """An empty environment with both wheels; what they depend on is that of these tests."""
    home = tmp_path / "env"
    venv.create(home)
    python = home / "bin" / "python"
    pytest.importorskip("pip")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel,
        models_wheel, cwd=tmp_path)
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    others = [path for path in sys.path if path and Path(path).name in ("site-packages", "dist-packages", ".extra")]
    (packages / "others.pth").write_text("\n".join(others))
    code = "import spit; print(spit.__file__, spit.__version__)"
    file, version = run(python, "-c", code, cwd=tmp_path, PYTHONPATH="").split()
    assert Path(file).is_relative_to(home)
    assert version == spit.__version__
    offline = ["unshare", "--map-root-user", "--net"] if can_unshare() else []
    out = run(*offline, home / "bin" / "spit", "demo", "-o", "out", cwd=tmp_path, PYTHONPATH="", HF_HUB_OFFLINE="1")
    assert "espresso" in out
    assert (tmp_path / "out/demo.png").is_file()
    run(*offline, home / "bin" / "spit", "doctor", cwd=tmp_path, PYTHONPATH="", HF_HUB_OFFLINE="1")
    names = run(python, "-c", "import spit; print(*spit.list_models(pretrained=True))", cwd=tmp_path, PYTHONPATH="")
    assert len(names.split()) == 5
    assert "smoke" in run(python, "-c", "from spit.training.recipe import recipes; print(*recipes())", cwd=tmp_path,
                          PYTHONPATH="")


def can_unshare() -> bool:
    return shutil.which("unshare") is not None and subprocess.run(
        ["unshare", "--map-root-user", "--net", "true"], capture_output=True, check=False).returncode == 0


def test_versions_agree() -> None:
    run(sys.executable, "tools/check_version.py", cwd=ROOT)


def test_a_wrong_tag_is_refused() -> None:
    ended = subprocess.run([sys.executable, "tools/check_version.py", "v99.0"], cwd=ROOT, capture_output=True,
                           text=True, check=False)
    assert ended.returncode == 1
    assert f"expected the tag v{spit.__version__}, got v99.0" in ended.stdout


def test_every_extra_is_in_the_quick_start() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    listed = re.findall(r"`([a-z]+)`", re.search(r"\| extra \|.*?\n\n", (ROOT / "docs/quickstart.md").read_text(),
                                                 re.DOTALL)[0])  # type: ignore[index]
    assert extras.keys() <= set(listed)


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_workflows_and_templates_are_yaml(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load(path.read_text())
    for job in document.get("jobs", {}).values():
        assert "steps" in job or "uses" in job
        for step in job.get("steps", []):
            for target in re.findall(r"^make ([a-z]+)", step.get("run", ""), re.MULTILINE):
                assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), target
            for tool in re.findall(r"\btools/\w+\.py|\btests/\w+\.py", step.get("run", "")):
                assert (ROOT / tool).is_file(), tool
