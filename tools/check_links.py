"""Check that every link of every page leads to a file, and every anchor to a heading; exit code 1 if one does not.

    python tools/check_links.py [FILE ...]      # default: every Markdown file and notebook of the repository

Links to other hosts are not followed: the check runs offline.
"""

import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+?)(?:\s+\"[^\"]*\")?\)|(?:src|srcset|href)=\\?\"([^\"\\]+)\\?\"")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def main(arguments: list[str]) -> int:
    files = [Path(name).resolve() for name in arguments] or list(pages())
    broken = [line for file in files for line in problems(file)]
    print("\n".join(broken) if broken else f"{len(files)} pages: every internal link leads somewhere")
    return 1 if broken else 0


def pages() -> Iterator[Path]:
    """The Markdown files and notebooks that git knows or would add."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", "*.ipynb"],
                            cwd=ROOT, capture_output=True, text=True, check=True)
    return (ROOT / name for name in sorted(set(listed.stdout.splitlines())) if (ROOT / name).is_file())


def problems(file: Path) -> Iterator[str]:
    """A line for each link of a page that leads nowhere."""
    text = CODE.sub("", FENCE.sub("", file.read_text()))
    for match in LINK.finditer(text):
        target, _, anchor = (match[1] or match[2]).partition("#")
        if ":" in target or target.startswith("//"):  # another host
            continue
        found = (file.parent / target).resolve() if target else file
        name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
        if not found.exists():
            yield f"{name}: no such file: {target}"
        elif anchor and found.suffix == ".md" and anchor not in anchors(found):
            yield f"{name}: {found.name} has no heading #{anchor}"


def anchors(file: Path) -> set[str]:
    """The anchors of a page's headings, as MkDocs and GitHub both write them."""
    found: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", file.read_text())):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        folded = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", folded).strip().lower()))
    return found


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
