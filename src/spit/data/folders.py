"""The images of a folder, in the same order on every machine."""

import os
from collections.abc import Collection
from pathlib import Path

from spit.data.images import FORMATS
from spit.errors import ImageError

SPLITS = {"train", "training", "val", "valid", "validation", "dev", "test", "testing"}  # are no names of classes
EXTENSIONS = frozenset(extension for extensions in FORMATS.values() for extension in extensions)


def image_paths(root: str | os.PathLike[str], extensions: Collection[str] = EXTENSIONS) -> list[Path]:
    """List the image files under a folder, at any depth, sorted folder by folder.

    A file is an image by its extension, in any case. Hidden files and folders are skipped, such as macOS's
    ``._cat.jpg``. Links to files are followed; links to folders are not, so that the walk ends.

    Args:
        extensions: in lower case, with the dot (default: those of images).

    Raises:
        ImageError: the folder is missing, is not a folder, cannot be read, or holds no image.
    """
    root = Path(root)
    if root.is_file():
        raise ImageError(f"{root}: expected a folder, got a file; load_image reads a single image")
    if not root.is_dir():
        raise ImageError(f"{root}: expected a folder, but no such path exists; check the spelling")
    paths = []
    for folder, folders, files in os.walk(root, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [Path(folder, name) for name in files
                  if not name.startswith(".") and Path(name).suffix.lower() in extensions]
    if not paths:
        raise ImageError(f"{root}: expected images in the folder or below ({', '.join(sorted(extensions))}), "
                         "got none; check the path (links to folders are not followed)")
    return sorted(paths, key=lambda path: path.relative_to(root).parts)


def _refuse(error: OSError) -> None:
    raise ImageError(f"{error.filename}: expected a folder that can be listed ({error.strerror}); "
                     "check its permissions") from error


def check_classes(root: str | os.PathLike[str], names: Collection[str]) -> None:
    """Raise ImageError if the folders of classes below a folder are parts of a data set, such as train and test."""
    if names and SPLITS.issuperset(names):
        raise ImageError(f"{root}: expected a folder for each class, got {' and '.join(sorted(names))}, which are "
                         "parts of a data set; give one of them, "
                         f"{' or '.join(os.path.join(root, name) for name in sorted(names))}")
