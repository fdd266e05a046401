"""Images whose class is the folder they lie in, ways to split them, and ImageNet's ReaL labels."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spit.data.classes import folder_names, wordnet_ids
from spit.errors import ImageError
from spit.evaluation.samples import Sample, find_images, spread

VALIDATION = re.compile(r"ILSVRC2012_val_(\d{8})")


@dataclass(frozen=True)
class LabelledFolder:
    """Labelled images.

    Attributes:
        root: the folder.
        classes: names of its sub-folders, sorted.
        images: folder by folder, in the same order on every machine; a label is an index into ``classes``.
    """

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

        Raises:
            ImageError: a class has too few images.
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
        """The same images with labels that are indices into other classes.

        Raises:
            ImageError: a class is not among them.
        """
        unknown = [name for name in self.classes if name not in classes]
        if unknown:
            raise ImageError(f"{self.root}: expected the classes of the training folder, got {unknown[0]!r}"
                             + (f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""))
        place = {name: index for index, name in enumerate(classes)}
        images = tuple(replace(image, label=place[self.classes[image.label]]) for image in self.images)
        return LabelledFolder(self.root, tuple(classes), images)


def labelled_folder(root: str | Path) -> LabelledFolder:
    """The images below each sub-folder, at any depth; the sub-folder is the class.

    Raises:
        ImageError: no such folder, no images, or an image beside the sub-folders.
    """
    root = Path(root)
    found = find_images(root)
    names = [Path(image.name).parts for image in found]
    for image, parts in zip(found, names, strict=True):
        if len(parts) < 2:
            raise ImageError(f"{image.image}: expected images in a folder for each class, "
                             f"{root / 'CLASS' / image.name}, got one beside them")
    classes = tuple(sorted({parts[0] for parts in names}))
    place = {name: index for index, name in enumerate(classes)}
    return LabelledFolder(root, classes, tuple(replace(image, label=place[parts[0]])
                                               for image, parts in zip(found, names, strict=True)))


def class_indices(folder: LabelledFolder, num_classes: int, class_names: Sequence[str] = ()) -> list[int]:
    """The logit of each class of a folder.

    Classes are found by the model's own class names, if it has any and the folder's names are not numbers. Otherwise
    as many classes as logits are taken in sorted order, as in training. If there are fewer, names that are numbers are
    indices (``0007``), and WordNet ids (``n01440764``) are ImageNet's for a model of 1,000 classes.

    Raises:
        ImageError: none of these applies.
    """
    names = folder.classes
    given = folder_names(names, len(names))
    if class_names and given != tuple(class_names) and not all(name.isdecimal() for name in names):
        unknown = [name for name in given if name not in class_names]
        if unknown:
            some = ", ".join(class_names[:3]) + (", …" if num_classes > 3 else "")
            raise ImageError(f"{folder.root}: expected classes that the model knows ({some}), got {unknown[0]!r}; use "
                             "--head knn or --head linear to fit a head")
        return [class_names.index(name) for name in given]
    if len(names) == num_classes:
        return list(range(num_classes))
    if all(name.isdecimal() for name in names) and max(map(int, names)) < num_classes:
        return [int(name) for name in names]
    known = wordnet_ids() if num_classes == 1000 else {}
    if all(name in known for name in names):
        return [known[name] for name in names]
    raise ImageError(f"{folder.root}: expected {num_classes} classes in sorted order, or class indices or ImageNet's "
                     f"WordNet ids as names, for a model of {num_classes} classes; got {len(names)} ({names[0]}, …); "
                     "use --head knn or --head linear to fit a head")


def read_real(path: Path, folder: LabelledFolder) -> list[frozenset[int]]:
    """ReaL labels (Beyer et al., 2020): every class that people saw in each image; may be empty.

    Args:
        path: a JSON object from names below the folder to lists of classes, or the published list of 50,000 lists in
            the order of ``ILSVRC2012_val_00000001`` and on.

    Raises:
        ImageError: no such file, or an image is not in it.
    """
    try:
        table: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ImageError(f"{path}: expected a JSON file of ReaL labels ({error})") from error
    found = []
    for image in folder.images:
        number = VALIDATION.search(image.name)
        if isinstance(table, dict):
            labels = table.get(image.name)
        else:
            place = int(number[1]) - 1 if number else -1
            labels = table[place] if isinstance(table, list) and 0 <= place < len(table) else None
        if not isinstance(labels, list) or not all(isinstance(label, int) for label in labels):
            raise ImageError(f"{path}: expected a list of ReaL labels for {image.name}, found none")
        found.append(frozenset(labels))
    return found
