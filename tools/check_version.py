"""Check that the version is the same everywhere; exit code 1 if it is not.

    python tools/check_version.py [vX.Y.Z]      # the tag of a release, if there is one

It is ``spit.__version__``; CITATION.cff, the distribution of models and the extra that asks for it repeat it, and a
release has its section in CHANGELOG.md.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPEATS = ((r"^version: (.+)", "CITATION.cff"), (r'^version = "(.+)"', "models/pyproject.toml"),
           (r'"spit-vit-models==(.+?)"', "pyproject.toml"))


def problems(tag: str | None) -> list[str]:
    def find(pattern: str, name: str) -> str:
        found = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)
        return found[1] if found else "nothing"

    version = find(r'^__version__ = "(.+)"', "src/spit/__init__.py")
    lines = []
    for pattern, name in REPEATS:
        if (repeated := find(pattern, name)) != version:
            lines.append(f"expected version {version} in {name}, found {repeated}")
    if tag is not None:
        if tag != f"v{version}":
            lines.append(f"expected the tag v{version}, got {tag}; spit.__version__ is {version}")
        if not re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
            lines.append(f"CHANGELOG.md has no section ## {version}")
    return lines


if __name__ == "__main__":
    found = problems(sys.argv[1] if sys.argv[1:] else None)
    print("\n".join(found) or "the version is the same everywhere")
    raise SystemExit(1 if found else 0)
