"""What is measured, and how models compute meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from spit.attribution.options import MethodOptions
from spit.devices import Precise
from spit.options import Options, check_choice, option, same

if TYPE_CHECKING:
    from spit.evaluation.samples import LabelledFolder

BATCHES = (16, 256)  # images in a batch on a CPU and on a GPU
MEASURES = ("comp", "auc")
QUANTUS = dict.fromkeys(("road", "saco", "randomization", "pointing"),
                        "Quantus measures it on spit's maps, see docs/attribution.md")
RealLabels = Sequence[frozenset[int]]


@dataclass(frozen=True)
class Batching(Options):
    """How many images are measured at once."""

    batch: int | None = option(None, "Images in a batch (default: on a GPU 256, on a CPU 16)", least=1)


@dataclass(frozen=True)
class Computing(Precise, Batching):
    """How models compute."""


@dataclass(frozen=True)
class Head(Options):
    """What names the class, and the images that it learns from."""

    real: Path | None = option(None, "ReaL labels: a JSON object from the path of each image below --data to a list of "
                                     "classes; images with an empty list do not count", metavar="JSON")
    head: Literal["logits", "knn", "linear"] = option(
        "logits", "The model's own head (logits), or nearest neighbours (knn) or a fitted linear head (linear) over "
                  "class tokens")
    train: Path | None = option(None, "Labelled images that the knn and linear heads learn from", metavar="FOLDER")
    train_per_class: int | None = option(
        None, "Instead of --train: learn from this many images of each class of --data, and test on the rest "
              "(Caltech-101: 30)", least=1)
    split_seed: int = option(0, "Seed of the split of --train-per-class", least=0)
    neighbors: int = option(20, "k of the knn head", least=1)
    temperature: float = option(0.07, "Temperature of the knn head's votes, exp(cosine / temperature)", above=0)

    def folders(self, data: Path,
                limit: int | None) -> "tuple[LabelledFolder, LabelledFolder | None, RealLabels | None]":
        """The images to test on, those to learn from, and the ReaL labels."""
        from spit.evaluation.samples import labelled_folder, read_real

        if self.head == "logits" and (self.train is not None or self.train_per_class is not None):
            raise ValueError("--train and --train-per-class go with --head knn or --head linear")
        if self.head != "logits" and (self.train is None) == (self.train_per_class is None):
            raise ValueError(f"--head {self.head} learns from images; give one of --train and --train-per-class")
        test, train = labelled_folder(data), None if self.train is None else labelled_folder(self.train)
        if self.train_per_class is not None:
            train, test = test.split(self.train_per_class, self.split_seed)
        test = test.spread(limit)
        return test, train, None if self.real is None else read_real(self.real, test)


@dataclass(frozen=True)
class Tokenizers(Options):
    """Which tokenizers models are measured on."""

    tokenizer: tuple[str, ...] = option(
        (), "Tokenizer to measure on: patch, voronoi, superpixel or a registered one, and its options after commas, "
            "such as superpixel,levels=3. Options left out are its defaults, or the model's own. Repeat it for several",
        metavar="NAME[,OPTION=VALUE]")
    equal_counts: bool = option(
        False, "Make as many tokens of each image with every tokenizer as with the first one, so that only their "
               "shapes differ. Superpixels take the level above that number and join the most similar regions; "
               "Voronoi cells take other sites; patches can only be the first")

    def __post_init__(self) -> None:
        from spit.evaluation.tokenizers import read_tokenizer

        super().__post_init__()
        for text in self.tokenizer:
            read_tokenizer(text)  # an unknown one is refused before models are loaded
            if self.tokenizer.count(text) > 1:
                raise ValueError(f"expected each --tokenizer once, got {text!r} twice")


@dataclass(frozen=True)
class MaskFolders(Options):
    """Where images and masks are, and which of them to take."""

    image_folder: str | None = option(None, "Folder of images below --data, with --mask-folder (default: that of a "
                                            "known layout)", metavar="NAME")
    mask_folder: str | None = option(None, "Folder of masks below --data, with --image-folder", metavar="NAME")
    first: int | None = option(None, "Only the first so many images, to tune on", least=1)


@dataclass(frozen=True)
class Methods(MethodOptions):
    """Which attributions are compared, and by what."""

    method: tuple[str, ...] = same(MethodOptions, "method", ("relevance", "flow", "random"))
    measure: tuple[str, ...] = option(
        ("comp", "auc"), "comp: Comp and Suff, always measured. auc: insertion and deletion. Repeat the option or "
        "separate names with commas", metavar="NAME")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.measures:
            check_choice("measure", name, MEASURES, QUANTUS.get(name, ""))
        if "lime" in self.names:
            from spit.attribution.lime import check_lime

            check_lime()  # a missing package is reported before models are loaded

    @property
    def measures(self) -> tuple[str, ...]:
        """What is measured, each once."""
        return tuple(dict.fromkeys(name for names in self.measure for name in names.split(",")))
