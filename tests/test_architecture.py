"""Imports go one way: arrows, predictor, answers, evaluation and training, commands (DESIGN.md)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "spit"
LAYERS = (
    ("errors", "environment", "lazy", "wording", "interruption", "options", "documents", "files", "locks"),
    ("images", "ranges", "tokens", "devices", "contrast", "kernels", "partition", "pooling", "validation"),
    # the arrows
    ("parts", "tokenizers", "features", "embedder", "backbone", "heads", "config", "timm_methods", "compiled",
     "model", "arrays", "tiles", "bands", "trees", "thinning"),
    ("data", "drawing", "weights", "interop", "registry", "hub", "timm", "seams"),
    ("forward_pass", "predictor", "fitted"),
    ("answers", "attribution", "segmentation", "labels", "video"),  # of a Prediction, of a label map, and of frames
    ("evaluation", "training", "bench", "public", "export", "runtime"),
    ("batch", "doctor", "serve"),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
ANSWERS = {("predictor", "answers"),  # imported when asked
           ("timm_methods", "hub"), ("partition", "drawing")}
MOST_LINES = 400


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module of spit that a file imports, and whether it does so inside a function; not for type checkers."""

    def walk(node: ast.AST, inside: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.ImportFrom) and child.module is not None and not child.level:
                if child.module == "spit":
                    yield from ((f"spit.{alias.name}", inside) for alias in child.names)
                else:
                    yield child.module, inside
            elif isinstance(child, ast.Import):
                yield from ((alias.name, inside) for alias in child.names)
            elif (isinstance(child, ast.Attribute) and ast.unparse(child.value) == "spit"  # after a bare import
                  and not child.attr.startswith("__")):
                yield f"spit.{child.attr}", inside
            yield from walk(child, inside or isinstance(child, ast.FunctionDef))

    return ((name, inside) for name, inside in walk(ast.parse(path.read_text()), False) if name.startswith("spit."))


def part(name: str) -> str:
    return name.split(".")[1]


def test_every_part_has_a_layer() -> None:
    parts = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in modules()}
    assert parts - {"__init__"} == set(RANK)


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_go_one_way(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own == "__init__":
        return
    for name, inside in imports(path):
        if part(name) not in RANK:  # spit.__version__
            assert name == "spit.__version__", name
        elif not (inside and (own, part(name)) in ANSWERS):
            assert RANK[part(name)] <= RANK[own], f"{own} imports {name}"


def test_only_what_loads_checkpoints_knows_the_release() -> None:
    """Its parts are plug-ins: the arrows know them by the names of their modules alone."""
    importers = {path.relative_to(SOURCE).as_posix() for path in modules()
                 if any(name.startswith("spit.interop.published") for name, _ in imports(path))}
    assert {path for path in importers if not path.startswith("interop/published/")} == {
        "interop/read.py", "public.py", "cli/convert.py", "cli/options.py"}


def test_only_commands_import_commands() -> None:
    outside = [*(SOURCE / "..").resolve().rglob("*.py"), *(ROOT / "benchmarks").glob("*.py"),
               *(ROOT / "examples").glob("*.py")]
    for path in outside:
        if not path.is_relative_to(SOURCE / "cli"):
            assert not any(part(name) == "cli" for name, _ in imports(path)), path


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_a_file_has_one_idea(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES
