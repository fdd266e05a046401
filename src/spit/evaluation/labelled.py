"""Images whose class is the folder they lie in, ways to split them, and ImageNet's reassessed labels."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spit.data.classes import folder_names, wordnet_ids
from spit.data.folders import image_paths
from spit.errors import ImageError

VALIDATION = re.compile(r"ILSVRC2012_val_(\d{8})")


@dataclass(frozen=True)
class LabelledImage:
    """An image file, its name below the folder, and the place of its class among the folder's classes."""

    path: Path
    name: str
    label: int


@dataclass(frozen=True)
class LabelledFolder:
    """Labelled images.

    Attributes:
        root: where the names begin.
        classes: the sub-folders' names, sorted.
        images: folder by folder, in one order on every machine.
    """

    root: Path
    classes: tuple[str, ...]
    images: tuple[LabelledImage, ...]

    @property
    def labels(self) -> list[int]:
        return [image.label for image in self.images]

    def spread(self, limit: int | None) -> "LabelledFolder":
        """At most that many images, evenly spaced over the set; the classes stay."""
        if limit is None or limit >= len(self.images):
            return self
        chosen = tuple(self.images[index * len(self.images) // limit] for index in range(limit))
        return LabelledFolder(self.root, self.classes, chosen)

    def split(self, per_class: int, seed: int = 0) -> tuple["LabelledFolder", "LabelledFolder"]:
        """That many random images of each class, and all others (Caltech-101's protocol has 30).

        Which ones depends on the seed, the place of the class and the number of its images alone.

        Raises:
            ImageError: a class has too few images to leave one over.
        """
        train: list[LabelledImage] = []
        test: list[LabelledImage] = []
        for label, name in enumerate(self.classes):
            own = [image for image in self.images if image.label == label]
            if len(own) <= per_class:
                raise ImageError(f"{self.root / name}: expected more than {per_class} images, to train on so many and "
                                 f"test on the rest, got {len(own)}")
            chosen = set(np.random.default_rng((seed, label)).permutation(len(own))[:per_class].tolist())
            train += [image for index, image in enumerate(own) if index in chosen]
            test += [image for index, image in enumerate(own) if index not in chosen]
        return (LabelledFolder(self.root, self.classes, tuple(train)),
                LabelledFolder(self.root, self.classes, tuple(test)))

    def with_classes(self, classes: Sequence[str]) -> "LabelledFolder":
        """The same images with labels that are places among other classes.

        Raises:
            ImageError: a class is not among them.
        """
        unknown = [name for name in self.classes if name not in classes]
        if unknown:
            raise ImageError(f"{self.root}: expected the classes of the training folder, got {unknown[0]!r}"
                             + (f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""))
        place = {name: index for index, name in enumerate(classes)}
        images = [LabelledImage(image.path, image.name, place[self.classes[image.label]]) for image in self.images]
        return LabelledFolder(self.root, tuple(classes), tuple(images))


def labelled_folder(root: str | Path) -> LabelledFolder:
    """The images below each sub-folder, at any depth; the sub-folder is the class.

    Raises:
        ImageError: no such folder, no images, or an image beside the sub-folders.
    """
    root = Path(root)
    found = [(path, path.relative_to(root)) for path in image_paths(root)]
    for path, name in found:
        if len(name.parts) < 2:
            raise ImageError(f"{path}: expected images in a folder for each class, {root / 'CLASS' / name.name}, got "
                             "one beside them")
    classes = tuple(sorted({name.parts[0] for _, name in found}))
    place = {name: index for index, name in enumerate(classes)}
    return LabelledFolder(root, classes, tuple(
        LabelledImage(path, name.as_posix(), place[name.parts[0]]) for path, name in found))


def class_indices(folder: LabelledFolder, num_classes: int, class_names: Sequence[str] = ()) -> list[int]:
    """The logit of each class of a folder.

    By the model's own class names, where it has any and the folder's names are more than numbers. Otherwise as many
    classes as logits are in sorted order, as they are in training. Of fewer, names that are numbers are the
    indices (``0007``), and WordNet ids (``n01440764``) are ImageNet's where there are 1,000 logits.

    Raises:
        ImageError: none of these.
    """
    names = folder.classes
    given = folder_names(names, len(names))
    if class_names and given != tuple(class_names) and not all(name.isdecimal() for name in names):
        unknown = [name for name in given if name not in class_names]
        if unknown:
            some = ", ".join(class_names[:3]) + (", …" if num_classes > 3 else "")
            raise ImageError(f"{folder.root}: expected classes that the model knows ({some}), got {unknown[0]!r}; a "
                             "head of its own is fitted with --head knn or --head linear")
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
                     "a head of its own is fitted with --head knn or --head linear")


def read_real(path: Path, folder: LabelledFolder) -> list[frozenset[int]]:
    """ReaL labels (Beyer et al., 2020): every class that people saw in each image; none leaves the image out.

    Args:
        path: a JSON object from names below the folder to lists of classes, or the published list of 50,000
            lists in the order of ``ILSVRC2012_val_00000001`` and on.

    Raises:
        ImageError: not such a file, or an image is not in it.
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
