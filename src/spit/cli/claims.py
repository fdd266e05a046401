"""Several processes on one folder: each image is done once, by whichever process comes first.

A process locks a hidden file beside the image's document while it works on the image. The operating system releases
the lock when a process ends, also by ``kill -9``. The others take the next image, and look again at the end.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spit.cli.companions import is_companion, received
from spit.cli.console import shown, tell
from spit.cli.inputs import Document, Input
from spit.data.folders import read_about
from spit.documents import differences, flat
from spit.evaluation.runner import case_of
from spit.locks import locked
from spit.tokens import plural

# Settings on which others depend, and their flags
DECIDING = {"models": "--model", "cut.method": "--method"}
OWN = {"target": "--target", "whole": "--whole", "size": "--size", "model": "hash of the weights"}  # of a verb
Stamps = dict[str, list[int] | None]


class Shared:
    """Documents about images, as an earlier run or another process has written them.

    Args:
        about: suffix of the document about an image.
        settings: everything that a document depends on beside the image.
        earlier: take documents of earlier runs too, not only those that were written since now.
        apart: whether a setting, by its key with dots, is about files that another run need not write.

    Raises:
        ValueError: the folder holds files about other images that were made with other settings, or a document about
            one of these images is not by spit.
    """

    def __init__(self, inputs: Sequence[Input], about: str, settings: Mapping[str, Any], earlier: bool = False,
                 apart: Callable[[str], bool] = lambda _: False) -> None:
        self.about, self._earlier, self._apart = about, earlier, apart
        self.next_run = "continues with the remaining images" if earlier else "processes all images again"
        self.settings = json.loads(json.dumps(settings))  # as documents have them
        self._notice = self._check_folder(inputs)
        self.before: Stamps = received() if is_companion() else {
            str(item.path): self._stamp(item) for item in inputs}  # of documents when the run began
        self._contents: dict[Path, str | None] = {}
        self.taken: list[str] = []  # images whose document was there when the run began
        self.elsewhere: list[str] = []  # images that another process has done since, a companion perhaps

    def about_run(self, item: Input) -> Document:
        """What a document says about the run that writes it; the first time, the user hears what is replaced."""
        notice, self._notice = self._notice, ""
        if notice:
            tell(notice)
        return {"key": self.key(item), "content": self.content(item), "settings": self.settings}

    def key(self, item: Input) -> str | None:
        """A hash of a file's bytes and the settings; None if it cannot be read."""
        content = self.content(item)
        return None if content is None else case_of(content=content, **self.settings)

    def content(self, item: Input) -> str | None:
        """A hash of a file's bytes; None if it cannot be read, which loading it will report."""
        if item.path not in self._contents:
            try:
                self._contents[item.path] = hashlib.sha256(item.path.read_bytes()).hexdigest()
            except (OSError, ValueError):
                self._contents[item.path] = None
        return self._contents[item.path]

    def finished(self, item: Input) -> Document | None:
        """The document about an image, if it was made from the same bytes with the same settings."""
        was_there = self.before[str(item.path)] == self._stamp(item)
        if was_there and not self._earlier:
            return None
        known = read_about(item.folder / item.name(self.about))
        whole = all((item.folder / str(file)).is_file() for file in known["files"].values())
        if not whole or self.key(item) is None or known.get("key") != self.key(item):
            return None
        (self.taken if was_there else self.elsewhere).append(str(item.path))
        return {**known, "image": str(item.path)}  # which an earlier run may have named from another folder

    @contextmanager
    def claim(self, item: Input, wait: bool) -> Iterator[bool]:
        """Whether this process may work on an image: no other does, or has ended if ``wait``."""
        document = item.folder / item.name(self.about)
        name = hashlib.sha256(document.name.encode(errors="surrogateescape")).hexdigest()[:16]
        with locked(document.with_name(f".spit-claim-{name}"), wait) as mine:
            yield mine

    @contextmanager
    def alone(self, folder: Path) -> Iterator[None]:
        """Refuse an output folder where a run with other options is at work, and those that come until the block ends.

        Runs with the same options may come; the first of them keeps the others out.
        """
        own = folder / f".spit-run-{self.about}-{case_of(**self.settings)}"
        with locked(own, wait=False):
            for other in {*folder.glob(f".spit-run-{self.about}-*")} - {own}:
                with locked(other, wait=False) as ended:  # killed; then this removes its file
                    if not ended:
                        raise ValueError(f"{shown(folder)}: a run with other options is writing there; wait for it, or "
                                         "choose another --output")
            yield

    def _check_folder(self, inputs: Sequence[Input]) -> str:
        """Refuse files of other images and options, and of the user; return what to say of those that are replaced."""
        own = {file: read_about(file) for file in sorted({item.folder / item.name(self.about) for item in inputs})}
        for file, document in own.items():
            if os.path.exists(file) and "spit" not in document:
                raise ValueError(f"{shown(file)} would be replaced, but spit did not write it, or it is damaged; "
                                 "choose another --output, or remove it")
        for folder in sorted({file.parent for file in own}):
            for file in sorted({*folder.glob(f"*.{self.about}")} - own.keys()):
                if changed := self.changed(read_about(file)):
                    raise made_otherwise(file, changed)
        replaced = {file: made for file, document in own.items() if (made := self.changed(document))}
        if not replaced:
            return ""
        file, made = next(iter(replaced.items()))
        alike = len({*replaced.values()}) == 1
        return (f"{shown(inputs[0].folder)}: replacing the files of {plural(len(replaced), 'image')}, "
                f"{f'made {made}' if alike else f'made otherwise; {shown(file.name)} was made {made}'}")

    def changed(self, document: Document, apart: bool = True) -> str:
        """How the same verb made a document, if by another version, or with other options; empty if not.

        Args:
            apart: compare settings that are ``apart`` too, if both runs have them.
        """
        other = document.get("settings")
        if not isinstance(other, dict) or other.get("verb") != self.settings.get("verb"):
            return ""
        old, new = other.get("spit"), self.settings.get("spit")
        version = f"by spit {old}, whose answers may differ from those of {new}" if old != new else ""
        before, now = (_told({**settings, "spit": new}) for settings in (other, self.settings))
        for key in filter(self._apart, before.keys() | now.keys()):
            if not (apart and key in before and key in now):
                before.pop(key, None)
                now.pop(key, None)
        options = differences(before, now, _option_name, [*DECIDING])
        return " and ".join(filter(None, (version, options and f"with other options: {options}")))

    def _stamp(self, item: Input) -> list[int] | None:
        """What changes when a document is written anew."""
        try:
            found = (item.folder / item.name(self.about)).stat()
        except (OSError, ValueError):
            return None
        return [found.st_ino, found.st_mtime_ns]


def made_otherwise(file: Path, made: str) -> ValueError:
    """The error about a file of an earlier run that this run cannot stand beside or replace."""
    return ValueError(f"{shown(file)} was made {made}; choose another --output, or remove the earlier files")


def _told(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by their key with dots, and the names of models."""
    models = settings.get("models")
    return flat(settings) | ({"models": ", ".join(sorted(models))} if models and isinstance(models, dict) else {})


def _option_name(key: str) -> str:
    """How the user knows a setting: ``--target``, ``tau`` of ``cut.tau``, ``lime.samples`` of a method."""
    name = key.rpartition(".")[2]
    if key in DECIDING:
        return DECIDING[key]
    if name in OWN and ".config." not in key:
        return OWN[name]
    return f".{key}".partition(".methods.")[2] or name
