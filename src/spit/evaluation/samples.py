"""Samples: image files with the files of their truth, or with the class that is the folder they lie in."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from spit.data.classes import folder_names, wordnet_ids
from spit.data.folders import image_paths, refuse_parts
from spit.data.images import header_size
from spit.documents import read_json
from spit.errors import ImageError

Item = TypeVar("Item")
VALIDATION = re.compile(r"ILSVRC2012_val_(\d{8})")


@dataclass(frozen=True)
class Sample:
    """An image to measure.

    Attributes:
        name: path below the data folder, for tables and messages.
        image: the image file.
        truths: files that its answer is compared with: a mask, or segmentations.
        label: its class, as an index into the classes of its folder.
    """

    name: str
    image: Path
    truths: tuple[Path, ...] = ()
    label: int = 0

    @cached_property
    def key(self) -> str:
        """A hash of the bytes of all its files. Names, paths and times do not change it."""
        digests = [hashlib.sha256(path.read_bytes()).digest() for path in (self.image, *self.truths)]
        return hashlib.sha256(b"".join(digests)).hexdigest()[:32]

    def size(self) -> tuple[int, int]:
        """Width and height according to the file's header; 0, 0 if it cannot be read."""
        return header_size(self.image)


def find_images(root: str | Path) -> list[Sample]:
    """All images of a folder, at any depth."""
    return [Sample(path.relative_to(root).as_posix(), path) for path in image_paths(root)]


def one_part(root: str | Path) -> list[Sample]:
    """All images of a folder; ImageError if they are in several parts of a data set, such as train and test."""
    found = find_images(root)
    parts = {image.name.partition("/")[0] for image in found}
    if len(parts) > 1:
        refuse_parts(root, parts)
    return found


def spread(items: Sequence[Item], count: int | None) -> list[Item]:
    """At most ``count`` items, evenly spaced; None for all."""
    if count is None or count >= len(items):
        return list(items)
    return [items[index * len(items) // count] for index in range(count)]


@dataclass(frozen=True)
class LabelledFolder:
    """Labelled images, folder by folder; a label is an index into ``classes``, the sorted names of the sub-folders."""

    root: Path
    classes: tuple[str, ...]
    images: tuple[Sample, ...]

    @property
    def labels(self) -> list[int]:
        """The class of each image."""
        return [image.label for image in self.images]

    def spread(self, limit: int | None) -> "LabelledFolder":
        """At most that many images, evenly spaced; the classes stay."""
        return replace(self, images=tuple(spread(self.images, limit)))

    def split(self, per_class: int, seed: int = 0) -> tuple["LabelledFolder", "LabelledFolder"]:
        """That many random images of each class, and all others (Caltech-101's protocol has 30).

        The choice depends only on the seed, the index of the class and the number of its images.
        """
        train: list[Sample] = []
        test: list[Sample] = []
        for label, name in enumerate(self.classes):
            own = [image for image in self.images if image.label == label]
            if len(own) <= per_class:
                raise ImageError(f"{self.root / name}: expected more than {per_class} images, to train on so many and "
                                 f"test on the rest, got {len(own)}")
            chosen = set(np.random.default_rng((seed, label)).permutation(len(own))[:per_class].tolist())
            for index, image in enumerate(own):
                (train if index in chosen else test).append(image)
        return replace(self, images=tuple(train)), replace(self, images=tuple(test))

    def with_classes(self, classes: Sequence[str]) -> "LabelledFolder":
        """The same images with labels that are indices into other classes; raises ImageError if one is missing."""
        unknown = [name for name in self.classes if name not in classes]
        if unknown:
            raise ImageError(f"{self.root}: expected the classes of the training folder, got {unknown[0]!r}"
                             + (f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""))
        place = {name: index for index, name in enumerate(classes)}
        images = tuple(replace(image, label=place[self.classes[image.label]]) for image in self.images)
        return LabelledFolder(self.root, tuple(classes), images)


def labelled_folder(root: str | Path) -> LabelledFolder:
    """The images below each sub-folder, at any depth; the sub-folder is the class."""
    root = Path(root)
    found = find_images(root)
    for image in found:
        if "/" not in image.name:
            raise ImageError(f"{image.image}: expected images in a folder for each class, "
                             f"{root / 'CLASS' / image.name}, got an image outside of any class folder")
    names = [image.name.partition("/")[0] for image in found]
    refuse_parts(root, set(names))
    place = {name: index for index, name in enumerate(sorted(set(names)))}
    return LabelledFolder(root, tuple(place), tuple(replace(image, label=place[name])
                                                    for image, name in zip(found, names, strict=True)))


def class_indices(folder: LabelledFolder, num_classes: int, class_names: Sequence[str] = ()) -> list[int]:
    """The logit of each class of a folder.

    Classes are found by the model's own class names, if it has any. Otherwise names that are numbers below the number
    of logits are indices (``7``, ``0007``), as many classes as logits are taken in sorted order, and WordNet ids
    (``n01440764``) are ImageNet's for a model of 1,000 classes.

    Raises:
        ImageError: none of these applies.
    """
    names = folder.classes
    given = folder_names(names) or names
    unknown = [name for name in given if name not in class_names]
    if class_names and not unknown:
        return [class_names.index(name) for name in given]
    numbers = all(name.isdecimal() for name in names)
    if class_names and not numbers:
        some = ", ".join(class_names[:3]) + (", …" if num_classes > 3 else "")
        raise ImageError(f"{folder.root}: expected classes that the model knows ({some}), got {unknown[0]!r}; give "
                         "--model one that was trained on these, or fit a head by --head knn or --head linear")
    if numbers and max(map(int, names)) < num_classes:
        return [int(name) for name in names]
    if len(names) == num_classes:
        return list(range(num_classes))
    known = wordnet_ids() if num_classes == 1000 else {}
    if all(name in known for name in names):
        return [known[name] for name in names]
    raise ImageError(f"{folder.root}: expected {num_classes} classes in sorted order, or class indices or ImageNet's "
                     f"WordNet ids as names, for a model of {num_classes} classes; got {len(names)} ({names[0]}, …); "
                     "give --model one that was trained on these, or fit a head by --head knn or --head linear")


def read_real(path: Path, folder: LabelledFolder) -> list[frozenset[int]]:
    """ReaL labels (Beyer et al., 2020): every class that people saw in each image; may be empty.

    Args:
        path: a JSON object from names below the folder to lists of classes, or the published list of 50,000 lists in
            the order of ``ILSVRC2012_val_00000001`` and on.

    Raises:
        ImageError: no such file, or an image is not in it.
    """
    try:
        table: Any = read_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ImageError(f"{path}: expected a JSON file of ReaL labels ({error})") from error
    by_number = dict(enumerate(table, start=1)) if isinstance(table, list) else {}
    found = []
    for image in folder.images:
        number = VALIDATION.search(image.name)
        labels = table.get(image.name) if isinstance(table, dict) else by_number.get(int(number[1]) if number else 0)
        if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels):
            raise ImageError(f"{path}: expected a list of ReaL labels for {image.name}, found none")
        found.append(frozenset(labels))
    return found
