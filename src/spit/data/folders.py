"""The images of a folder, in the same order on every machine."""

import logging
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from spit.data.images import FORMATS, no_such_path, printable
from spit.errors import ImageError
from spit.wording import plural

_log = logging.getLogger("spit")

SPLITS = {"train", "training", "val", "valid", "validation", "dev", "test", "testing"}  # are no names of classes
EXTENSIONS = frozenset(extension for extensions in FORMATS.values() for extension in extensions)
DOCUMENTS = (".json", ".segment.json", ".explain.json")  # ends of what spit tokenize, segment and explain write
PICTURES = ("demo.png", "correspondences.png", "curves.png", "swap.png")  # that spit writes about several photos
MARK = b"tEXtSoftware\0spit"  # in the first bytes of a PNG file that spit wrote


def image_paths(root: str | os.PathLike[str], extensions: Collection[str] = EXTENSIONS) -> list[Path]:
    """List the image files under a folder, at any depth, sorted folder by folder.

    A file is an image by its extension, in any case. Hidden files and folders are skipped, such as macOS's
    ``._cat.jpg``. Links to files are followed; links to folders are not, so that the walk ends. Pictures that spit
    wrote about photos are left out, with a warning.

    Args:
        extensions: in lower case, with the dot (default: those of images).

    Raises:
        ImageError: the folder is missing, is not a folder, cannot be read, or holds no image.
    """
    paths, results = photos_and_results(root, extensions)
    if not paths:
        raise ImageError(f"{root}: expected images, got none but those that spit wrote; give the folder of your photos")
    if results:
        _log.warning("%s: left out %s that spit wrote", root, plural(len(results), "image"))
    return paths


def photos_and_results(root: str | os.PathLike[str],
                       extensions: Collection[str] = EXTENSIONS) -> tuple[list[Path], list[Path]]:
    """What :func:`image_paths` lists, and the pictures that spit wrote about photos."""
    root = Path(root)
    if root.is_file():
        raise ImageError(f"{root}: expected a folder, got a file")
    if not root.is_dir():
        name = printable(root)
        raise ImageError(f"{name}: expected a folder, {no_such_path(name)}")
    found: tuple[list[Path], list[Path]] = ([], [])
    for folder, folders, files in os.walk(root, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        there = set(files)
        for name in files:
            if not name.startswith(".") and Path(name).suffix.lower() in extensions:
                found[_is_result(folder, name, there)].append(Path(folder, name))
    if not any(found):
        raise ImageError(f"{root}: expected images in the folder or below ({', '.join(sorted(extensions))}), "
                         "got none; check the path (links to folders are not followed)")
    paths, results = (sorted(some, key=lambda path: path.relative_to(root).parts) for some in found)
    return paths, results


def _is_result(folder: str, name: str, there: Collection[str]) -> bool:
    """Whether a file is a picture by spit beside a document about the photo that it is named after."""
    photo, *ends = name.rsplit(".", 2)
    documented = len(ends) == 2 and any(photo + end in there for end in DOCUMENTS)
    if documented or name in PICTURES:
        with suppress(OSError), Path(folder, name).open("rb") as file:
            return MARK in file.read(256)
    return False


def _refuse(error: OSError) -> None:
    raise ImageError(f"{error.filename}: expected a folder that can be listed ({error.strerror}); "
                     "check its permissions") from error


def refuse_parts(root: str | os.PathLike[str], names: Collection[str]) -> None:
    """Raise ImageError if the folders below a folder are parts of a data set, such as train and test."""
    if names and SPLITS.issuperset(names):
        raise ImageError(f"{root}: expected one part of a data set, got the folder of {' and '.join(sorted(names))}; "
                         f"give {' or '.join(os.path.join(root, name) for name in sorted(names))}")
