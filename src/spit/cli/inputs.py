"""The images that a user names, each with a unique name for its outputs."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Generic, TypeVar

from spit.cli.console import Say, shown, tell, track
from spit.cli.outputs import written
from spit.data.folders import image_paths
from spit.errors import ImageError, SpitError

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Input:
    """An image file, and the path below the output folder, without a suffix, that its outputs share."""

    path: Path
    stem: PurePath


@dataclass(frozen=True)
class Outcome(Generic[Answer]):
    """The results of a run over images, in order; the failures by path and reason."""

    answers: list[Answer]
    failed: list[tuple[Path, str]]

    @property
    def code(self) -> int:
        return 2 if self.failed else 0

    def failures(self) -> list[dict[str, Any]]:
        """The failures as JSON has them."""
        return [{"image": str(path), "error": reason} for path, reason in self.failed]


def find_inputs(paths: Sequence[Path], output: Path | None = None) -> list[Input]:
    """The images that files and folders name.

    A folder keeps its structure, below its own name if several paths are given. Two images whose outputs would share a
    name keep their extensions in it (``cat.jpg.json``, ``cat.png.json``). A missing path beside an existing one counts
    as a file: :func:`for_each` reports that it cannot be read.

    Args:
        output: images that an earlier run wrote below it are left out.

    Raises:
        ImageError: no path exists, or a folder holds no image.
        ValueError: outputs would share a name even so.
    """
    if not any(path.exists() for path in paths):
        raise ImageError(f"{shown(paths[0])}: expected an image file or a folder, but there is none; check the path")
    found: dict[Path, PurePath] = {}  # with suffixes; a file named twice is done once
    for path in paths:
        for file, name in _walk(path, output, alone=len(paths) == 1):
            found.setdefault(file, name)
    stems = Counter(_key(name.with_suffix("")) for name in found.values())
    inputs = [Input(file, name.with_suffix("") if stems[_key(name.with_suffix(""))] == 1 else name)
              for file, name in found.items()]
    taken: dict[str, Path] = {}
    for item in inputs:
        other = taken.setdefault(_key(item.stem), item.path)
        if other is not item.path and output is not None:
            raise ValueError(f"{shown(other)} and {shown(item.path)} would be written under one name, {item.stem}; "
                             "give each its own --output, or the folder above both")
    return inputs


def for_each(inputs: Sequence[Input], description: str, work: Callable[[Input, Say], Answer]) -> Outcome[Answer]:
    """Work on every image behind a progress bar. One that fails is reported, and the others go on.

    A single image raises its error. A full disk and the like end the run.

    Args:
        work: takes an image, and a function that shows what is being done.
    """
    outcome: Outcome[Answer] = Outcome([], [])
    with track(inputs, description) as (items, say):
        for item in items:
            try:
                outcome.answers.append(work(item, say))
            except (SpitError, ValueError) as error:
                if len(inputs) == 1:
                    raise
                reason = " ".join(str(error).split())
                outcome.failed.append((item.path, reason))
                tell(reason if str(item.path) in reason else f"{shown(item.path)}: {reason}")
    if outcome.failed:
        tell(f"{len(outcome.failed)} of {len(inputs)} images failed")
    return outcome


def _walk(path: Path, output: Path | None, alone: bool) -> list[tuple[Path, PurePath]]:
    if not path.is_dir():
        return [(path, PurePath(path.name))]
    files = image_paths(path)
    if output is not None and output.resolve() != path.resolve():
        files = [file for file in files if not file.resolve().is_relative_to(output.resolve())]
    elif output is not None:  # photos and outputs side by side
        made = written(output)
        files = [file for file in files if file not in made]
    prefix = PurePath() if alone else PurePath(path.resolve().name)
    return [(file, prefix / file.relative_to(path)) for file in files]


def _key(name: PurePath) -> str:
    """The name as a file system that ignores case compares it."""
    return str(name).casefold()
