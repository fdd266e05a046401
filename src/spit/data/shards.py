"""WebDataset shards with random access: the position of each image in a tar file.

This is our own because the webdataset package reads shards from start to end, and a step must be able to read any
photo. A sample is the files that share a key, the member's path up to the first dot of its name: ``key.jpg`` and
``key.cls``. The headers are read once; an image is then one ``pread``.
"""

import glob
import itertools
import os
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from spit.data.folders import EXTENSIONS
from spit.errors import ImageError

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


@dataclass(frozen=True)
class Member:
    """An image inside a shard.

    Attributes:
        name: of the member.
        offset, size: of its bytes in the shard.
        label: the text of ``key.cls``, or None.
    """

    name: str
    offset: int
    size: int
    label: str | None


def expand_pattern(pattern: str) -> list[str]:
    """The paths of a pattern: ``{000..012}`` and ``{a,b}`` are expanded first, then ``*`` and ``?``, sorted.

    A path without any of these is returned as it is, whether it exists or not.
    """
    if os.path.exists(pattern):
        return [pattern]
    paths = []
    for path in _expand_braces(pattern):
        found = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
        if not found:
            raise ImageError(f"{path}: no file has that pattern; check the path")
        paths += found
    return paths


def index_shard(path: str | os.PathLike[str]) -> list[Member]:
    """The images of a shard, in its order.

    Raises:
        ImageError: no such file, no uncompressed tar file, or no image in it.
    """
    try:
        with open(path, "rb") as file, tarfile.open(fileobj=file, mode="r:") as archive:
            files = [member for member in archive if member.isreg() and not _is_hidden(member.name)]
            labels = {key: os.pread(file.fileno(), member.size, member.offset_data).decode(errors="replace").strip()
                      for member, key, extension in _split(files) if extension == "cls"}
    except FileNotFoundError as error:
        raise ImageError(f"{path}: no such shard; check the path") from error
    except (tarfile.TarError, OSError) as error:
        raise ImageError(f"{path}: expected a whole, uncompressed tar file ({error}); make it again") from error
    members = [Member(member.name, member.offset_data, member.size, labels.get(key))
               for member, key, extension in _split(files) if f".{extension.lower()}" in EXTENSIONS]
    if not members:
        raise ImageError(f"{path}: expected members named key.jpg, key.png and the like, got none; in a WebDataset "
                         "shard the extension starts at the first dot of a name")
    return members


def read_member(path: str | os.PathLike[str], offset: int, size: int) -> bytes:
    """The bytes of one member; fewer if the shard is truncated.

    Raises:
        ImageError: the shard cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return os.pread(descriptor, size, offset)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ImageError(f"{path}: expected a readable shard ({error.strerror}); check the path") from error


def is_shard(path: str | os.PathLike[str]) -> bool:
    """Whether a path has a shard's extension."""
    return Path(path).suffix.lower() == ".tar"


def _split(files: Iterable[tarfile.TarInfo]) -> Iterator[tuple[tarfile.TarInfo, str, str]]:
    """Each member with its key and its extension."""
    for member in files:
        path = PurePosixPath(member.name)
        stem, _, extension = path.name.partition(".")
        yield member, str(path.parent / stem), extension


def _is_hidden(name: str) -> bool:
    return PurePosixPath(name).name.startswith(".")


def _expand_braces(pattern: str) -> list[str]:
    parts = _BRACES.split(pattern)  # literal, inside, literal, inside, …, literal
    choices = [[part] if index % 2 == 0 else _choices(part) for index, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def _choices(inside: str) -> list[str]:
    match = _RANGE.fullmatch(inside)
    if match is None:
        return inside.split(",")
    first, last = match.groups()
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
