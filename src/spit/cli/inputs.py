"""The images a user names, each with a name of its own for what is written about it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Generic, TypeVar

from spit.cli.console import Say, shown, tell, track
from spit.cli.outputs import written
from spit.errors import ImageError, SpitError

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Input:
    """An image file, and the path below the output folder, without a suffix, that its outputs share."""

    path: Path
    stem: PurePath


@dataclass(frozen=True)
class Outcome(Generic[Answer]):
    """What came of a run over images, in order; what failed, by path and reason."""

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

    A folder keeps its structure, below its own name where several paths are given. Two images whose
    outputs would share a name keep their extensions in it (``cat.jpg.json``, ``cat.png.json``). A path that
    is not there, beside one that is, counts as a file: :func:`for_each` names it as one that cannot be read.

    Args:
        output: images below it are left out of the folders that hold it, and in the folder itself what was written
            there: an earlier run made them.

    Raises:
        ImageError: no path is there, or a folder holds no image.
        ValueError: outputs would share a name even so, or ``output`` is a file.
    """
    if output is not None and output.exists() and not output.is_dir():
        raise ValueError(f"expected a folder for --output, got the file {shown(output)}")
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
    """Work on every image behind a progress bar; one that fails is named, and the others go on.

    Where there is but one image its error is raised. A full disk and the like end the run.

    Args:
        work: takes an image, and a function to say what is being done with it.
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
    from spit.data.folders import image_paths

    if not path.is_dir():
        return [(path, PurePath(path.name))]
    files = image_paths(path)
    if output is not None and output.resolve() != path.resolve():
        files = [file for file in files if not file.resolve().is_relative_to(output.resolve())]
    elif output is not None:  # photos and what was made of them side by side
        made = written(output)
        files = [file for file in files if file not in made]
    prefix = PurePath() if alone else PurePath(path.resolve().name)
    return [(file, prefix / file.relative_to(path)) for file in files]


def _key(name: PurePath) -> str:
    """What a file system that ignores case would take for the same name."""
    return str(name).casefold()
