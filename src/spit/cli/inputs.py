"""The images that a user names, each with a unique name for its outputs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path, PurePath
from typing import Any

from spit.cli.console import shown, tell
from spit.data.folders import photos_and_results
from spit.data.images import expect_some
from spit.errors import ImageError
from spit.wording import plural

Document = dict[str, Any]


@dataclass(frozen=True)
class Input:
    """An image file, and the path without a suffix, below the output folder, that its outputs share."""

    path: Path
    stem: PurePath

    def name(self, suffix: str) -> str:
        """The path of an output below the output folder."""
        return f"{self.stem}.{suffix}"


def find_inputs(paths: Sequence[Path], output: Path | None = None) -> list[Input]:
    """The images that files and folders name.

    A folder keeps its structure, below its own name if several paths are given. Two images whose outputs would share a
    name keep their extensions in it (``cat.jpg.json``, ``cat.png.json``). A missing path beside an existing one counts
    as a file: loading it reports that it cannot be read. Pictures that spit wrote are left out; a line on stderr says
    so.
    """
    expect_some(paths)
    names: dict[Path, PurePath] = {}  # with suffixes; a file named twice is done once
    for path in paths:
        for file, name in _walk(path, output, alone=len(paths) == 1):
            names.setdefault(file, name)
    if not names:
        raise ImageError(f"{shown(paths[0])}: expected images, got none but those that spit wrote; give the folder of "
                         "your photos, or another --output")
    # Names are compared as a file system that ignores case does.
    stems = Counter(str(name.with_suffix("")).casefold() for name in names.values())
    inputs = [Input(file, name if stems[str(name.with_suffix("")).casefold()] > 1 else name.with_suffix(""))
              for file, name in names.items()]
    taken: dict[str, Path] = {}
    for item in inputs:
        other = taken.setdefault(str(item.stem).casefold(), item.path)
        if other is not item.path and output is not None:
            raise ValueError(f"{shown(other)} and {shown(item.path)} would be written under one name, {item.stem}; "
                             "give each its own --output, or the folder above both")
    return inputs


def _walk(path: Path, output: Path | None, alone: bool) -> list[tuple[Path, PurePath]]:
    if not path.is_dir():
        return [(path, PurePath(path.name))]
    files, results = photos_and_results(path)
    if files and results:
        tell(f"{shown(path)}: left out {plural(len(results), 'image')} that spit wrote")
    if files and output is not None and realpath(path) == realpath(output):
        tell(f"{shown(path)}: --output is the folder of your photos, so files are written beside them; another folder "
             "keeps them apart")
    prefix = PurePath() if alone else PurePath(PurePath(realpath(path)).name)
    return [(file, prefix / file.relative_to(path)) for file in files]
