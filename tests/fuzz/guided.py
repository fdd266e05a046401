"""Fuzzing guided by coverage, of the readers of files from outside; needs atheris.

    python tests/fuzz/guided.py images -max_total_time=60

Every input is read, or refused by the error of its reader. Anything else ends the run, and libFuzzer writes the input
into the working directory. ``make fuzz`` runs every reader for a minute.
"""

import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))
with atheris.instrument_imports(include=["spit", "tarfile", "tomllib", "json", "safetensors"]):
    from fuzz.test_corpora import shard
    from fuzz.test_files import FORMATS, model, sound
    from spit.data.images import load_image
    from spit.data.shards import index_shard
    from spit.documents import read_json
    from spit.errors import ImageError, SpitError, WeightsError
    from spit.interop import from_timm
    from spit.training.recipe import Recipe
    from spit.weights import save

FOLDER = Path(tempfile.mkdtemp())


def images(data: bytes) -> None:
    with contextlib.suppress(ImageError):
        load_image(data, max_pixels=1_000_000)


def shards(data: bytes) -> None:
    with contextlib.suppress(ImageError):
        index_shard("shard.tar", io.BytesIO(data))


def recipes(data: bytes) -> None:
    (FOLDER / "recipe.toml").write_bytes(data)
    with contextlib.suppress(SpitError):
        Recipe.read(FOLDER / "recipe.toml")


def weights(data: bytes) -> None:
    (FOLDER / "weights.safetensors").write_bytes(data)
    with contextlib.suppress(WeightsError):
        from_timm(FOLDER / "weights.safetensors")


def documents(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        read_json(data)


def seeds(reader: Callable[[bytes], None]) -> list[bytes]:
    """Sound files to start from."""
    if reader is images:
        return [sound(index) for index in range(len(FORMATS))]
    if reader is shards:
        return [shard(form) for form in range(3)]
    if reader is recipes:
        return [file.read_bytes() for file in (Path(__file__).parents[2] / "recipes").glob("*.toml")]
    if reader is weights:
        return [next(save(model(), FOLDER / "model").glob("*.safetensors")).read_bytes()]
    return [b'{"a": [1, 2.5, null, {"b": "c"}]}']


def main() -> None:
    readers = {reader.__name__: reader for reader in (images, shards, recipes, weights, documents)}
    reader = readers[sys.argv.pop(1)]
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for index, data in enumerate(seeds(reader)):
        (corpus / str(index)).write_bytes(data)
    warnings.simplefilter("ignore")
    atheris.Setup([*sys.argv, "-timeout=20", "-rss_limit_mb=4096", str(corpus)], reader)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
