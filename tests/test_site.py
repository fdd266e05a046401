"""The site builds without a warning and asks no other host for anything; its checks find what is wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import spit

ROOT = Path(__file__).parents[1]
FETCHED = re.compile(r"<(?:script|img|iframe|source|video|embed)\b[^>]*?\s(?:src|srcset)=\"?(?:https?:)?//[^\s\">]+"
                     r"|<link\b(?=[^>]*rel=\"?(?:stylesheet|preconnect|preload|icon|manifest))[^>]*?\shref=\"?"
                     r"(?:https?:)?//[^\s\">]+")
STYLE = re.compile(r"(?:url\(|@import )['\"]?(?:https?:)?//[^)'\"\s]+")


def run(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False,
                          env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})  # its note on the successor of mkdocs


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="no mkdocs-material: pip install 'spit-vit[docs]'")
    folder = tmp_path_factory.mktemp("site")
    built = run("-m", "mkdocs", "build", "--strict", "--site-dir", folder)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


def test_no_request_to_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text()
        assert not FETCHED.findall(text), page
        assert 'class="mermaid"' not in text, f"{page}: mermaid is loaded from another host"
    for sheet in site.rglob("*.css"):
        assert not STYLE.findall(sheet.read_text()), sheet


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    text = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    for name in spit.__all__:
        assert re.search(rf'id="spit\.{name}"', text), name


def test_every_verb_is_in_the_reference(site: Path) -> None:
    text = (site / "reference/commands.html").read_text()
    for verb in ("demo", "segment", "train-head", "evaluate saliency"):
        assert f"spit {verb}</code>" in text, verb


def test_the_map_leads_to_files(site: Path) -> None:
    assert 'href="source/src/spit/model.py.html"' in (site / "paper-to-code.html").read_text()
    assert (site / "source/src/spit/model.py.html").is_file()


def test_links() -> None:
    checked = run("tools/check_links.py")
    assert checked.returncode == 0, checked.stdout


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading, and `code`\n[a](nowhere.md) [b](#no) [c](#a-heading-and-code) [d](https://host/x)\n"
                    "```\n[e](in-code.md)\n```\n")
    checked = run("tools/check_links.py", page)
    assert checked.returncode == 1
    assert checked.stdout.splitlines() == [f"{page}: no such file: nowhere.md", f"{page}: page.md has no heading #no"]


def test_the_import_graph_is_drawn_anew() -> None:
    checked = run("tools/import_graph.py", "--check")
    assert checked.returncode == 0, checked.stdout


def test_spelling() -> None:
    pytest.importorskip("codespell_lib", reason="no codespell: pip install 'spit-vit[dev]'")
    checked = run("-m", "codespell_lib")
    assert checked.returncode == 0, checked.stdout
