"""The container file: built and run where docker or podman works; what it says is checked everywhere."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text()
LINES = [line for line in TEXT.replace("\\\n", "").splitlines() if line and not line.startswith("#")]


def words(instruction: str) -> list[str]:
    return [line.removeprefix(instruction).strip() for line in LINES if line.startswith(f"{instruction} ")]


def test_it_does_not_run_as_root() -> None:
    assert words("USER") == ["10001:10001"]
    order = [line.split()[0] for line in LINES]
    assert "RUN" not in order[order.index("USER") :]


def test_what_it_copies_is_there() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()  # podman reads it too
    for line in words("COPY"):
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists(), source
            assert source not in ignored


def test_extras_exist() -> None:
    import tomllib

    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [extras] = re.findall(r"'\.\[(.*?)\]'", TEXT)
    assert set(extras.split(",")) <= set(known)


def test_no_secret_and_no_other_port() -> None:
    assert "SPIT_TOKEN" not in "\n".join(LINES)  # given when it runs
    assert words("EXPOSE") == ["7860"]


def test_it_needs_a_token() -> None:
    """The last line of the entry point, as the container runs it without SPIT_TOKEN."""
    [entry] = words("ENTRYPOINT")
    command = shlex.split(entry.strip("[]").replace(",", " "))[2].partition("exec spit ")[2].replace('"$@"', "")
    environment = {name: value for name, value in os.environ.items() if name != "SPIT_TOKEN"}
    ended = subprocess.run([sys.executable, "-m", "spit.cli", *shlex.split(command)], env=environment, check=False,
                           capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    assert "--token" in ended.stderr


def test_compiled_kernels_can_be_copied(tmp_path: Path) -> None:
    """What the image does for numba: compile into one folder, run from a copy of it while the first is read-only."""
    first, second = tmp_path / "numba", tmp_path / "copy"
    code = "import torch, spit; print(int(spit.SuperpixelTokenizer()(torch.zeros(3, 32, 32)).counts[0]))"

    def run(folder: Path) -> str:
        return subprocess.run([sys.executable, "-c", code],
                              env={**os.environ, "NUMBA_CACHE_DIR": str(folder)}, check=True, capture_output=True,
                              text=True, timeout=300).stdout

    answer = run(first)
    shutil.copytree(first, second)
    before = {path: path.stat().st_mtime_ns for path in second.rglob("*.nbc")}
    assert before
    assert run(second) == answer
    assert {path: path.stat().st_mtime_ns for path in second.rglob("*.nbc")} == before  # nothing compiled again


def tool() -> str:
    for name in ("docker", "podman"):
        if shutil.which(name) and subprocess.run([name, "info"], capture_output=True, check=False, timeout=30,
                                                 ).returncode == 0:
            return name
    pytest.skip("neither docker nor podman works here")


def test_built_and_run(png) -> None:
    name = tool()
    built = subprocess.run([name, "build", "-f", "Containerfile", "-t", "spit-test", "."], cwd=ROOT,
                           capture_output=True, text=True, check=False, timeout=1800)
    if built.returncode and re.search(r"resolve|dial tcp|network|registry", built.stderr):
        pytest.skip("no registry can be reached")
    assert built.returncode == 0, built.stderr
    identity = subprocess.run(
        [name, "run", "-d", "--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt",
         "no-new-privileges", "-e", "SPIT_TOKEN=correct-horse", "-p", "127.0.0.1:17860:7860", "spit-test"],
        capture_output=True, text=True, check=True).stdout.strip()
    try:
        for _ in range(600):
            try:
                if httpx.get("http://127.0.0.1:17860/ready", timeout=5).status_code == 200:
                    break
            except httpx.HTTPError:
                pass
            time.sleep(0.2)
        answer = httpx.post("http://127.0.0.1:17860/v1/segment", files={"image": png()}, timeout=60,
                            headers={"Authorization": "Bearer correct-horse"})
        assert answer.status_code == 200
        user = subprocess.run([name, "exec", identity, "id", "-u"], capture_output=True, text=True, check=True)
        assert user.stdout.strip() == "10001"
    finally:
        subprocess.run([name, "stop", identity], capture_output=True, check=False)
