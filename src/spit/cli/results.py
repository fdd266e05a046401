"""The files that a verb writes about each image, and the document that says what they were made from."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spit import __version__
from spit.cli.console import shown
from spit.cli.inputs import Document, Input
from spit.cli.outputs import real_paths, refuse_protected, write_files
from spit.documents import read_json
from spit.locks import locked

LOCK = ".spit-lock"


@dataclass(frozen=True)
class Results:
    """The results of a run: files about each image, and a document with the key of the run and the image.

    Args:
        folder: where files go.
        about: suffix of the documents.
        settings: everything that a document depends on beside the image, as JSON has it.
        inputs: real paths of the images of the run, which are never overwritten.
        again: do images again that are done.
    """

    folder: Path
    about: str
    settings: Mapping[str, Any]
    inputs: frozenset[str]
    again: bool

    @classmethod
    def of(cls, inputs: Sequence[Input], folder: Path, about: str, again: bool, **settings: Any) -> "Results":
        """The results of a run of this version of spit."""
        settings = json.loads(json.dumps({**settings, "spit": __version__}))  # tuples become lists
        return cls(folder, about, settings, real_paths(item.path for item in inputs), again)

    def done(self, item: Input) -> Document | None:
        """The document about an image, if it and its files were made from the same bytes with the same settings.

        Raises:
            ValueError: there is a file of its name that spit did not write.
        """
        document = self._read(item)
        if document is None or self.again:
            return None
        with suppress(OSError):  # of the image, which loading it reports
            if document.get("key") == self._key(item) and all(
                    (self.folder / str(name)).is_file() for name in document["files"].values()):
                return {**document, "image": str(item.path)}
        return None

    def place(self, item: Input, suffix: str) -> Path:
        """Where a file about an image goes that is written by other means."""
        self._read(item)  # refuses to replace a file of the user
        path = self.folder / item.name(suffix)
        refuse_protected(path, self.inputs)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, item: Input, document: Document, contents: Mapping[str, tuple[str, bytes]],
              present: Mapping[str, str] | None = None) -> Document:
        """Write files about an image, suffix and bytes by kind, and then the document; return it.

        Args:
            present: suffixes of files that are there already, by kind.
        """
        self._read(item)  # refuses to replace a file of the user
        files = {kind: item.name(suffix) for kind, (suffix, _) in contents.items()}
        files |= {kind: item.name(suffix) for kind, suffix in (present or {}).items()}
        document = {"image": str(item.path), **document, "key": self._key(item), "settings": self.settings,
                    "files": files, "spit": __version__}
        write_files({**{self.folder / files[kind]: data for kind, (_, data) in contents.items()},
                     self._file(item): (json.dumps(document, indent=2) + "\n").encode()}, self.inputs)
        return document

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other commands out of the folder; ValueError if one is at work there."""
        with locked(self.folder / LOCK) as mine:
            if not mine:
                raise ValueError(f"{shown(self.folder)}: another command is writing there; wait for it, or choose "
                                 "another --output")
            yield

    def _file(self, item: Input) -> Path:
        return self.folder / item.name(self.about)

    def _key(self, item: Input) -> str:
        """A hash of the image file's bytes and the settings."""
        with item.path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        parts = json.dumps({"content": content, **self.settings}, sort_keys=True)
        return hashlib.sha256(parts.encode()).hexdigest()[:16]

    def _read(self, item: Input) -> Document | None:
        """The document of an earlier run, if there is one."""
        file = self._file(item)
        if not os.path.lexists(file):
            return None
        try:
            document = read_json(file.read_bytes())
        except (OSError, ValueError):
            document = None
        if not isinstance(document, dict) or "spit" not in document or not isinstance(document.get("files"), dict):
            raise ValueError(f"{shown(file)} would be replaced, but spit did not write it, or it is damaged; choose "
                             "another --output, or remove it")
        return document
