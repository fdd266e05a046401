"""Hooks of the documentation site (mkdocs.yml): what is not below docs/ becomes part of the site.

- Files of the repository that a page links to, such as ``../recipes/smoke.toml`` or a notebook, become pages below
  ``source/``.
- On the map from the paper to the code, every path leads to its file.
- CONTRIBUTING.md, CHANGELOG.md and others, which a repository has at its top, become pages of the section "Project".
- ``reference/commands.md`` is made from the commands themselves.
"""

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
TOP = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md", "security.md": "SECURITY.md",
       "conduct.md": "CODE_OF_CONDUCT.md"}  # pages of the site, and their files
LINK = re.compile(r"(?<=\]\()([^)\s]+?)(#[^)\s]*)?(?=\))")
CODE = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`")
MAPS = ("paper-to-code.md",)  # pages on which a path in code font leads to the file
LANGUAGES = {".py": "python", ".toml": "toml"}
HIDDEN = "---\nsearch:\n  exclude: true\n---\n"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made here."""
    for uri, name in TOP.items():
        files.append(File.generated(config, uri, content=(ROOT / name).read_text()))
    files.append(File.generated(config, "reference/commands.md", content=commands_page()))
    waiting = [repository_path(file.src_uri) for file in files if file.is_documentation_page()]
    while waiting:
        path = waiting.pop()
        for target in outside(path) if path.is_file() else ():  # the page of commands has no file
            uri = site_uri(target)
            if files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, content=source_page(target)))
                waiting += [target] if target.suffix == ".md" else []
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links to files outside docs/ to their pages here; links to folders become plain text."""
    path = repository_path(page.file.src_uri)
    if not path.is_file() or path.suffix not in (".md", ".ipynb"):
        return markdown
    markdown = re.sub(r"\[([^\]\[]*)\]\(([^)\s#:]+)\)", lambda match: (
        match[1] if (path.parent / match[2]).is_dir() else match[0]), markdown)

    def lead(match: re.Match[str]) -> str:
        if ":" in match[1] or not match[1]:
            return match[0]
        uri = site_uri((path.parent / match[1]).resolve())
        return posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".") + (match[2] or "")

    markdown = LINK.sub(lead, markdown)
    if page.file.src_uri in MAPS:
        markdown = CODE.sub(lambda match: (f"[{match[0]}]({site_uri(code)})" if (code := code_file(match[1]))
                                           else match[0]), markdown)
    return markdown


def repository_path(uri: str) -> Path:
    """The file that a page of the site is made from."""
    if uri in TOP:
        return ROOT / TOP[uri]
    if uri.startswith("source/"):
        path = ROOT / uri.removeprefix("source/")
        return path if path.is_file() else path.with_suffix("")
    return ROOT / "docs" / uri


def site_uri(path: Path) -> str:
    """Where a file of the repository is in the site; one that is not text has to lie in docs/."""
    name = path.relative_to(ROOT).as_posix()
    for uri, top in TOP.items():
        if name == top:
            return uri
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return f"source/{name}" if path.suffix == ".md" else f"source/{name}.md"


def code_file(name: str) -> Path | None:
    """The file that a path of the map names, below src/spit or the repository."""
    return next((path for path in (ROOT / "src/spit" / name, ROOT / name) if path.is_file()), None)


def outside(path: Path) -> Iterator[Path]:
    """The files outside docs/ that a page links to."""
    if path.name in MAPS:
        yield from filter(None, map(code_file, CODE.findall(path.read_text())))
    for target, _ in LINK.findall(path.read_text()):
        found = (path.parent / target).resolve()
        if ":" not in target and found.is_file() and site_uri(found).startswith("source/"):
            yield found


def source_page(path: Path) -> str:
    """A file of the repository as a page that the search leaves out."""
    if path.suffix == ".md":
        return HIDDEN + path.read_text()
    if path.suffix == ".ipynb":
        return notebook_page(path)
    name = path.relative_to(ROOT).as_posix()
    return f"{HIDDEN}# {path.name}\n\n`{name}`\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}````\n"


def notebook_page(path: Path) -> str:
    """A notebook with its text and pictures."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/jpeg" in data:
                parts.append(f'<img alt="output" src="data:image/jpeg;base64,{"".join(data["image/jpeg"]).strip()}">')
            elif printed := "".join(output.get("text") or data.get("text/plain", "")).rstrip():
                parts.append(f"```text\n{printed}\n```")
    return "\n\n".join(parts) + "\n"


def commands_page() -> str:
    """Every verb with its options, from the commands themselves."""
    from typer.main import get_command

    from spit.cli.app import app

    lines = ["# Commands", "", "`spit --help` and `spit VERB --help` print the same.", ""]
    for name, command in verbs(get_command(app), "spit"):
        text, _, more = (command.help or "").partition("\n")
        lines += [f"## `{name}`", "", text, more, "", "| option | what | default |", "|---|---|---|"]
        for parameter in command.params:
            names = ", ".join(f"`{flag}`" for flag in (*parameter.opts, *parameter.secondary_opts))
            if parameter.param_type_name == "argument":
                names = f"`{(parameter.metavar or parameter.name).upper()}`"
            if parameter.name != "help":
                lines.append(f"| {names} | {cell(getattr(parameter, 'help', '') or '')} | {default(parameter)} |")
        lines.append("")
    return "\n".join(lines)


def verbs(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The commands below a command, with their full names."""
    if not hasattr(command, "commands"):
        yield name, command
    for word, below in getattr(command, "commands", {}).items():
        yield from verbs(below, f"{name} {word}")


def default(parameter: Any) -> str:
    """What an option is if it is not given; nothing for switches that are off and options without a value."""
    value = parameter.default
    if value in (None, False, (), []) or callable(value):
        return ""
    return f"`{', '.join(map(str, value)) if isinstance(value, list | tuple) else value}`"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
