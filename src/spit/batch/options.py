"""The options of ``spit batch``: what is done with each image, and where."""

from dataclasses import dataclass
from typing import Literal

from spit.answers.segment import Segment
from spit.attribution.options import NAMES, check_method
from spit.data.images import MAX_PIXELS
from spit.options import Options, documented, option

MAX_BYTES = 2**28  # of one image file, 256 MiB
OPERATIONS = {"tokenize": "Tokenizing", "classify": "Classifying", "embed": "Embedding", "explain": "Explaining",
              "segment": "Segmenting"}


@documented
@dataclass(frozen=True)
class Work(Options):
    """What is done with each image; a row depends on these options, the model and the image alone.

    Example:
        >>> from spit.batch.options import Work
        >>> Work("explain", method="flow").top
        5
    """

    op: Literal["tokenize", "classify", "embed", "explain", "segment"] = option(
        "classify", "tokenize: label maps; classify: top classes; embed: class vectors; explain: top classes and a map "
                    "of the first; segment: masks of the salient object")
    method: str | None = option(
        None, f"Of explain: {', '.join(NAMES)} (default: relevance). Of segment: head, cut or both (default: both, "
              "or cut if the model has no head)", metavar="NAME")
    top: int = option(5, "Number of classes to name", least=1)
    max_pixels: int = option(MAX_PIXELS, "Refuse images of more pixels", least=1)
    max_bytes: int = option(MAX_BYTES, "Refuse files of more bytes", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method is not None and self.op == "explain":
            check_method(self.method)
        elif self.method is not None and self.op == "segment":
            Segment(method=self.method)
        elif self.method is not None:
            raise ValueError(f"expected no method with op {self.op}, got {self.method!r}; explain and segment have one")


@dataclass(frozen=True)
class Columns(Options):
    """The columns of Parquet inputs."""

    column: str | None = option(None, "Parquet: column of encoded images, bytes or structs with the field bytes "
                                      "(default: the first such column)", metavar="NAME")
    key_column: str | None = option(None, "Parquet: column of keys (default: file and row number)", metavar="NAME")


@documented
@dataclass(frozen=True)
class Cluster(Options):
    """Which processes do the work; rows do not depend on them, but for the last bits of a GPU's floats."""

    # By default a Ray actor for each GPU, or for each CPU if there is no GPU.
    workers: int | None = option(None, "Processes that share the work; 0 works in this one", least=0)
    address: str | None = option(
        None, "Ray cluster to connect to, such as ray://head:10001 or auto (default: this machine)", metavar="ADDRESS")
    batch: int | None = option(None, "Images in a batch (default: 16)", least=1)
    decoders: int | None = option(
        None, "Threads of a worker that read and decode (default: 1, or a GPU's share of the CPUs)", least=1)
    block_size: int | None = option(
        None, "Images in a block of work, which is one Parquet file (default: 1,000; fewer if there are fewer than "
              "64,000 images)", least=1)
