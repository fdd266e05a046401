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
from contextlib import nullcontext
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from spit.data.folders import EXTENSIONS
from spit.errors import ImageError

LONGEST = 2**16  # bytes of a class
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


class Member(NamedTuple):
    """An image inside a shard."""

    name: str
    offset: int  # of its bytes in the shard
    size: int
    label: str | None  # the text of key.cls


def expand_pattern(pattern: str) -> list[str]:
    """The paths of a pattern: ``{000..012}`` and ``{a,b}`` are expanded first, then ``*`` and ``?``, sorted.

    A path without any of these is returned as it is, whether it exists or not.
    """
    if os.path.exists(pattern):
        return [pattern]
    paths = []
    for path in expand_braces(pattern):
        found = sorted(glob.glob(path)) if glob.has_magic(path) else [path]
        if not found:
            raise ImageError(f"{path}: no file has that pattern; check the path")
        paths += found
    return paths


def index_shard(path: str | os.PathLike[str], file: BinaryIO | None = None) -> list[Member]:
    """The images of a shard, in its order.

    Args:
        path: of the shard, for messages too.
        file: the shard, opened elsewhere; left open (default: the file at the path).
    """
    try:
        with (open(path, "rb") if file is None else nullcontext(file)) as opened, \
                tarfile.open(fileobj=opened, mode="r:") as archive:
            files = [(member, *_split(member.name)) for member in archive if member.isreg()]
            labels = {key: _text(opened, member) for member, key, extension in files if extension == "cls"}
    except FileNotFoundError as error:
        raise ImageError(f"{path}: no such shard; check the path") from error
    except (tarfile.TarError, OSError, ValueError) as error:  # ValueError: numbers in a header that no file has
        raise ImageError(f"{path}: expected a whole, uncompressed tar file ({error}); make it again") from error
    members = [Member(member.name, member.offset_data, member.size, labels.get(key))
               for member, key, extension in files if f".{extension.lower()}" in EXTENSIONS]
    if not members:
        raise ImageError(f"{path}: expected members named key.jpg, key.png and the like, got none; in a WebDataset "
                         "shard the extension starts at the first dot of a name")
    return members


def read_member(path: str | os.PathLike[str], offset: int, size: int) -> bytes:
    """The bytes of one member; fewer if the shard is truncated."""
    try:
        with open(path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), size, offset)
    except OSError as error:
        raise ImageError(f"{path}: expected a readable shard ({error.strerror}); check the path") from error


def is_shard(path: str | os.PathLike[str]) -> bool:
    """Whether a path has a shard's extension."""
    return Path(path).suffix.lower() == ".tar"


def _text(file: BinaryIO, member: tarfile.TarInfo) -> str:
    if member.size > LONGEST:
        raise ValueError(f"{member.name} has {member.size:,} bytes where a class is expected")
    file.seek(member.offset_data)
    return file.read(member.size).decode(errors="replace").strip()


def _split(name: str) -> tuple[str, str]:
    """The key and the extension of a member; a hidden one has no extension."""
    path = PurePosixPath(name)
    stem, _, extension = path.name.partition(".")
    return str(path.parent / stem), extension if stem else ""


def expand_braces(pattern: str) -> list[str]:
    """The paths of a pattern with ``{000..012}`` and ``{a,b}`` expanded."""
    choices = []
    for index, part in enumerate(_BRACES.split(pattern)):  # literal, inside, literal, inside, …, literal
        if index % 2 and (match := _RANGE.fullmatch(part)):
            first, last = match.groups()
            choices.append([str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)])
        else:
            choices.append(part.split(",") if index % 2 else [part])
    return ["".join(chosen) for chosen in itertools.product(*choices)]
