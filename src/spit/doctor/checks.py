"""The checks of ``spit doctor``: each yields one line for every fault that it finds."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from spit import kernels
from spit.data.images import load_image
from spit.doctor import machine
from spit.doctor.answers import SAMPLES, TOLERANCE, Recorded, answer, read_answers, sample_paths
from spit.errors import MissingExtra, SpitError
from spit.predictor import Predictor, load
from spit.registry import list_models
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, Tokenizer, VoronoiTokenizer

LEAST_DISK = 2**30
LEAST_MEMORY = 2**30
SIDE = 80  # of the images that backends are compared on; the reference is slow
TOKENIZERS: tuple[Tokenizer, ...] = (
    PatchTokenizer(), VoronoiTokenizer(), SuperpixelTokenizer(),
    SuperpixelTokenizer(compactness=0.8, self_loop="none", features="saturated", refine=1),
    SuperpixelTokenizer(similarity="variance", merge_threshold=0.05, max_tokens=20))
LOGITS = 1e-4  # tolerance of logits in batches, over the largest if that is above 1
NVIDIA = Path("/proc/driver/nvidia/version")
Check = Callable[[], Iterator[str]]


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        faults: one line each; none if all is well.
        skipped: why the check could not be made; None if it was.
    """

    check: str
    faults: tuple[str, ...]
    skipped: str | None
    seconds: float


def examine(say: Callable[[str], None] = lambda text: None) -> Iterator[Finding]:
    """Make every check. An error that stops one is a fault of its own, with its type and message.

    Args:
        say: told what is being checked.
    """
    for name, check in CHECKS.items():
        say(f"Checking {name}")
        start = time.perf_counter()
        faults: list[str] = []
        skipped = None
        try:
            faults.extend(check())
        except MissingExtra as error:
            skipped = str(error)
        except Exception as error:  # whatever is broken here is what this command is asked to find
            faults.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())}")
        yield Finding(name, tuple(faults), skipped, time.perf_counter() - start)


def check_installation() -> Iterator[str]:
    """Packages as spit needs them, and a torch that sees the GPU."""
    for name in machine.CORE:
        if machine.installed(name) is None:
            yield f"{name} is not installed; pip install {name}"
    try:
        from packaging.requirements import Requirement
    except ImportError:  # then pip has checked them when spit was installed
        Requirement = None  # type: ignore[assignment, misc]
    for line in machine.requirements() if Requirement is not None else []:
        wanted = Requirement(line)
        found = machine.installed(wanted.name)
        if found is not None and not wanted.specifier.contains(found, prereleases=True):
            yield f"{wanted.name} {found} is installed, spit needs {wanted.specifier}; pip install '{line}'"
    if NVIDIA.exists() and not torch.cuda.is_available():
        yield "an NVIDIA driver is here, but torch finds no CUDA device; install a CUDA build of torch"
    if torch.cuda.is_available() and "triton" not in machine.backends():
        yield "a CUDA device is here, but triton is not installed; pip install triton"


def check_space() -> Iterator[str]:
    """Disk, memory, and a place for compiled loops."""
    disk, memory = machine.free_disk(), machine.free_memory()
    if disk < LEAST_DISK:
        yield f"{disk / 2**20:.0f} MiB of disk are free for temporary files, fewer than {LEAST_DISK / 2**20:.0f}"
    if memory is not None and memory < LEAST_MEMORY:
        yield f"{memory / 2**20:.0f} MiB of memory are free, fewer than {LEAST_MEMORY / 2**20:.0f}"
    if machine.caches()["numba"] is None:
        yield ("numba has no folder that it can write to, so every process compiles for half a minute; set "
               "NUMBA_CACHE_DIR")


def check_partitions() -> Iterator[str]:
    """The same labels by every backend, on every run, alone and in a batch."""
    images = _pictures(3)
    for tokenizer in TOKENIZERS:
        expected = _labels(tokenizer, images, "reference")
        for name in machine.backends():
            for way, given in (("", images), (" on a second run", images), (" in another order", images.flip(0))):
                labels = _labels(tokenizer, given, name)
                labels = labels.flip(0) if way.endswith("order") else labels
                if not torch.equal(labels, expected):
                    yield f"partitions of {tokenizer} by backend {name} differ from the reference's{way}"
        alone = torch.cat([_labels(tokenizer, image[None], "numba") for image in images])
        if not torch.equal(alone, expected):
            yield f"partitions of {tokenizer} differ for an image alone"


def check_batches() -> Iterator[str]:
    """The same logits alone and in any batch, on every device."""
    images = _pictures(4)
    for device in machine.devices():
        predictor = load("spit_tiny_16", device["name"])
        alone = torch.cat([predictor(image, crop=False).logits.cpu() for image in images])
        most = LOGITS * max(1.0, float(alone.abs().max()))
        for logits in (predictor(images, crop=False).logits.cpu(),
                       predictor(images.flip(0), crop=False).logits.cpu().flip(0)):
            difference = float((logits - alone).abs().max())
            if not difference <= most:
                yield f"logits on {device['name']} move by {difference:.2g} in a batch; at most {most:.2g} expected"


def check_answers() -> Iterator[str]:
    """The answers that the embedded models gave when spit was released, on sample images of scikit-image."""
    recorded = read_answers()
    for name in list_models(pretrained=True):
        predictor = load(name, "cpu")
        if predictor.digest != recorded.digests.get(name):
            yield f"the weights of {name} are not those that answers were recorded with; install spit again"
            continue
        for path in sample_paths():
            yield from compare_answer(predictor, path, recorded.answers[name][path.name])


def compare_answer(predictor: Predictor, path: Path, expected: Recorded) -> Iterator[str]:
    """What differs in the answer for one image; what follows from a difference is not reported."""
    found = answer(predictor, path)
    where = f"{predictor.name} on {path.name}"
    if found.pixels != expected.pixels:
        yield f"{where}: the resized image differs from the recorded one; Pillow {machine.installed('Pillow')} is here"
    elif found.labels != expected.labels:
        yield f"{where}: the partition differs from the recorded one, with {found.tokens} regions for {expected.tokens}"
    else:
        furthest = max(abs(value - expected.logits[index]) for index, value in found.logits.items()
                       if index in expected.logits) if found.logits.keys() & expected.logits.keys() else float("inf")
        if found.logits.keys() != expected.logits.keys() or not furthest <= TOLERANCE:
            yield (f"{where}: the largest logits are of classes {list(found.logits)}, for {list(expected.logits)}, and "
                   f"differ by {furthest:.2g}; at most {TOLERANCE:g} expected")


def _labels(tokenizer: Tokenizer, images: Tensor, backend: str) -> Tensor:
    with kernels.backend(backend):
        return tokenizer(images.cuda() if backend == "triton" else images).blocks[0].cpu()


def _pictures(count: int) -> Tensor:
    """Squares of sample images if they are here, of noise over a slope if not, ``(count, 3, SIDE, SIDE)`` uint8."""
    try:
        photos: Sequence[Tensor] = [load_image(path) for path in sample_paths()]
    except SpitError:
        random = torch.Generator().manual_seed(0)
        slope = torch.linspace(0, 200, 4 * SIDE).expand(3, 4 * SIDE, -1)
        photos = [(slope + 50 * torch.rand(3, 4 * SIDE, 4 * SIDE, generator=random)).to(torch.uint8)]
    squares = [photos[index % len(photos)][:, 40 * index :, 30 * index :][:, :SIDE, :SIDE] for index in range(count)]
    return torch.stack(squares)


CHECKS: dict[str, Check] = {
    "installation": check_installation,
    "disk, memory and caches": check_space,
    "partitions across backends and runs": check_partitions,
    "logits across batches": check_batches,
    f"recorded answers on {len(SAMPLES)} sample images": check_answers,
}
