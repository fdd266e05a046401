"""Where the images of a corpus are: files, members of tar shards and rows of Parquet, on disk or in an object store.

A :class:`Listing` names every image and reads none. A :class:`Reader` fetches the bytes of one.
"""

import hashlib
import os
import posixpath
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from threading import Lock
from typing import Any, NamedTuple

from spit.batch.arrow import pa, pafs, pq
from spit.batch.options import MAX_BYTES, Columns
from spit.data.folders import EXTENSIONS, image_paths
from spit.data.shards import expand_braces, expand_pattern, index_shard
from spit.errors import ImageError

TABLES = (".parquet", ".pq")
KNOWN = EXTENSIONS | {".tar", *TABLES}
MAGIC = "*?[{"
SECRET = re.compile(r"//[^/@\s]*@")  # user and password of a URI


class Item(NamedTuple):
    """One image: a whole file (offset −1), a member of a shard, or a row of a table (row group and row in it)."""

    key: str
    source: int  # the input that named it
    path: bytes  # on the file system of that input
    offset: int
    size: int


SCHEMA = pa.schema([("key", pa.string()), ("source", pa.int32()), ("path", pa.binary()), ("offset", pa.int64()),
                    ("size", pa.int64())])


@dataclass
class Listing:
    """The images of a corpus in order.

    Attributes:
        digest: of the names, sizes and times of change of all files. Contents are not read for it.
    """

    items: list[Item] = field(default_factory=list)
    digest: str = ""

    def __len__(self) -> int:
        return len(self.items)

    def table(self) -> pa.Table:
        """The items as a table."""
        columns = zip(*self.items, strict=True)
        return pa.table([pa.array(column, kind) for column, kind in zip(columns, SCHEMA.types, strict=True)],
                        schema=SCHEMA)


def list_images(inputs: Sequence[str], columns: Columns = Columns()) -> Listing:  # noqa: B008
    """List the images of folders, files and patterns.

    Args:
        inputs: each a folder that is searched at any depth, a file, or a pattern of files with ``*``, ``?`` and
            ``{000..012}``; images, WebDataset shards (``.tar``) or Parquet. A path, or a URI of a file system that
            pyarrow knows (``s3://bucket/…``, ``gs://…``, ``fsspec+…``).
        columns: of Parquet files.

    Keys are paths below the folder if the only input is one, else paths as given. The key of a shard's member is the
    shard's, a slash and the member's name; that of a row is the file's, ``#`` and the row's number.

    Raises:
        ImageError: an input has no image or cannot be read, or two images have the same key.
    """
    listing, total = Listing(), hashlib.sha256()
    for number, given in enumerate(inputs):
        for file in _files(given, alone=len(inputs) == 1):
            total.update(repr((number, file.key, file.size, file.changed)).encode())
            listing.items += _expand(file, number, columns)
    if not listing.items:
        raise ImageError("expected images in --input, got tables without a row")
    keys = Counter(item.key for item in listing.items)
    if len(keys) < len(listing):
        [(twice, _)] = keys.most_common(1)
        raise ImageError(f"expected each image under a key of its own, got {twice!r} twice; give each input once, or "
                         "another --key-column")
    listing.digest = total.hexdigest()
    return listing


class Reader:
    """Reads the bytes of items. It may be called from several threads.

    Args:
        inputs: those that were listed.
        columns: of Parquet files.
        max_bytes: files of more are refused before they are read.
    """

    def __init__(self, inputs: Sequence[str], columns: Columns = Columns(),  # noqa: B008
                 max_bytes: int = MAX_BYTES) -> None:
        self._systems = [_file_system(given)[0] for given in inputs]
        self._columns, self._max_bytes = columns, max_bytes
        self._lock = Lock()
        self._group: tuple[tuple[int, bytes, int], Any] | None = None  # the row group that was read last

    def __call__(self, item: Item) -> bytes:
        """The bytes of an image.

        Raises:
            ImageError: they cannot be read, or are too many.
        """
        try:
            if _suffix(os.fsdecode(item.path)) in TABLES:
                return self._row(item)
            with _opened(self._systems[item.source], os.fsdecode(item.path)) as file:
                size = item.size if item.offset >= 0 else file.seek(0, os.SEEK_END)
                self._check(item, size)
                file.seek(max(item.offset, 0))
                return bytes(file.read(size))
        except (OSError, pa.ArrowException) as error:
            raise ImageError(f"{item.key}: expected a file that can be read ({_reason(error)}); check the path"
                             ) from error

    def _row(self, item: Item) -> bytes:
        name = (item.source, item.path, item.offset)
        with self._lock:
            if self._group is None or self._group[0] != name:
                self._group = None  # before the next one is read
                with _opened(self._systems[item.source], os.fsdecode(item.path)) as file:
                    table = pq.ParquetFile(file)
                    column = _image_column(table, self._columns.column, item.key)
                    self._group = name, table.read_row_group(item.offset, columns=[column]).column(0)
            value = self._group[1][item.size]
        if pa.types.is_struct(value.type):
            value = value.get("bytes") if value.is_valid else pa.scalar(None)
        if not value.is_valid:
            raise ImageError(f"{item.key}: expected the bytes of an image, got null")
        self._check(item, value.as_buffer().size)
        return bytes(value.as_py())

    def _check(self, item: Item, size: int) -> None:
        if size > self._max_bytes:
            raise ImageError(f"{item.key}: expected at most {self._max_bytes:,} bytes (--max-bytes), got {size:,}")


class _File(NamedTuple):
    key: str  # the path as given
    path: str  # absolute: a worker may have another working directory
    size: int
    changed: int
    system: Any  # pyarrow's file system; None for local paths


def _file_system(given: str) -> tuple[Any, str]:
    """The file system of a URI and the path on it, a pattern included; None and the path if it is no URI."""
    if "://" not in given:
        return None, given
    address, mark, query = given.partition("?")
    if "=" not in query:  # a wildcard
        address, mark, query = given, "", ""
    first = min((address.index(sign) for sign in MAGIC if sign in address), default=len(address))
    fixed = address.rindex("/", 0, first) if first < len(address) else len(address)
    try:
        system, path = pafs.FileSystem.from_uri(address[:fixed] + mark + query)
    except (ValueError, OSError, ImportError, pa.ArrowException) as error:
        raise ImageError(f"{_shown(given)}: expected a path, or a URI that pyarrow can open ({_reason(error)})"
                         ) from error
    return system, path.rstrip("/") + address[fixed:]


def _files(given: str, alone: bool) -> Iterator[_File]:
    """The files that an input names, sorted."""
    try:
        system, path = _file_system(given)
        found = list(_local(path) if system is None else _remote(system, path, given))
    except (OSError, pa.ArrowException) as error:
        raise ImageError(f"{_shown(given)}: expected an input that can be listed ({_reason(error)}); check the path "
                         "and its permissions") from error
    for key, file in found:
        yield file._replace(key=_text(key if alone else file.key))


def _local(given: str) -> Iterator[tuple[str, _File]]:
    for name in expand_pattern(given):
        whole = os.path.isdir(name)
        if not whole and not os.path.isfile(name):
            raise ImageError(f"{_shown(name)}: expected a folder or a file, but no such path exists; check the "
                             "spelling")
        for file in image_paths(name, KNOWN) if whole else [name]:
            path = os.fspath(file)
            about = os.stat(path) if os.path.exists(path) else os.lstat(path)  # a dead link is rejected when it is read
            key = os.path.relpath(path, name) if whole else path
            yield key, _File(path, os.path.abspath(path), about.st_size, about.st_mtime_ns, None)


def _remote(system: Any, pattern: str, given: str) -> Iterator[tuple[str, _File]]:
    none = True
    for path in expand_braces(pattern):
        parts = path.split("/")
        wild = next((index for index, part in enumerate(parts) if any(sign in part for sign in MAGIC)), None)
        root = path if wild is None else "/".join(parts[:wild])
        [about] = system.get_file_info([root])
        found = [about] if about.type == pafs.FileType.File else system.get_file_info(
            pafs.FileSelector(root, recursive=True, allow_not_found=True))
        for info in sorted(found, key=lambda info: info.path):
            below = posixpath.relpath(info.path, root)
            hidden = any(part.startswith(".") and part != "." for part in below.split("/"))
            wanted = info.path.split("/")
            matches = wild is None or (len(wanted) == len(parts) and all(map(fnmatchcase, wanted, parts)))
            if info.type == pafs.FileType.File and matches and not hidden and _suffix(info.path) in KNOWN:
                none = False
                key = info.path if below == "." or wild is not None else below
                yield key, _File(info.path, info.path, info.size, info.mtime_ns or 0, system)
    if none:
        raise ImageError(f"{_shown(given)}: expected images, shards or Parquet there, got none; check the path")


def _expand(file: _File, source: int, columns: Columns) -> Iterator[Item]:
    """The images that a file has."""
    path, suffix = os.fsencode(file.path), _suffix(file.path)
    if suffix == ".tar":
        with _opened(file.system, file.path) as opened:
            for member in index_shard(file.path, opened):
                yield Item(f"{file.key}/{_text(member.name)}", source, path, member.offset, member.size)
    elif suffix in TABLES:
        try:
            with _opened(file.system, file.path) as opened:
                yield from _rows(pq.ParquetFile(opened), file, source, columns)
        except (OSError, pa.ArrowException) as error:
            raise ImageError(f"{file.key}: expected a whole Parquet file ({_reason(error)}); make it again") from error
    else:
        yield Item(file.key, source, path, -1, file.size)


def _rows(table: Any, file: _File, source: int, columns: Columns) -> Iterator[Item]:
    _image_column(table, columns.column, file.key)
    names = table.schema_arrow.names
    if columns.key_column is not None and columns.key_column not in names:
        raise ImageError(f"{file.key}: expected a column {columns.key_column!r}, got {', '.join(names)}")
    start = 0
    for group in range(table.num_row_groups):
        count = table.metadata.row_group(group).num_rows
        names = [f"{file.key}#{start + row}" for row in range(count)]
        if columns.key_column is not None:
            names = list(map(str, table.read_row_group(group, columns=[columns.key_column]).column(0).to_pylist()))
        for row, name in enumerate(names):
            yield Item(name, source, os.fsencode(file.path), group, row)
        start += count


def _image_column(table: Any, name: str | None, key: str) -> str:
    """The column with the bytes of images."""
    schema = table.schema_arrow
    fits = [column.name for column in schema if _has_bytes(column.type) and name in (None, column.name)]
    if not fits:
        told = "of bytes, or of structs with the field bytes," if name is None else f"{name!r} of bytes"
        raise ImageError(f"{key}: expected a column {told} got "
                         f"{', '.join(f'{column.name} ({column.type})' for column in schema)}; give --column")
    return str(fits[0])


def _has_bytes(kind: Any) -> bool:
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and _has_bytes(kind.field("bytes").type)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _opened(system: Any, path: str) -> AbstractContextManager[Any]:
    return _local_file(path) if system is None else system.open_input_file(path)


@contextmanager
def _local_file(path: str) -> Iterator[Any]:
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would block, a device may never end
        raise OSError(0, "no regular file")
    with open(path, "rb") as file:
        yield file


def _suffix(path: str) -> str:
    return posixpath.splitext(path)[1].lower()


def _text(name: str) -> str:
    """A name as Parquet can hold it."""
    return name.encode(errors="backslashreplace").decode()


def _shown(given: str) -> str:
    """An input without the password that a URI may hold, in printable characters."""
    text = SECRET.sub("//…@", given)
    return text if text.isprintable() else repr(text)


def _reason(error: BaseException) -> str:
    text = SECRET.sub("//…@", str(getattr(error, "strerror", None) or error))
    return " ".join(text.split()) or type(error).__name__
