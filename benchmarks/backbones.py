"""Which backbones spit.wrap takes, and how far their answers on square patches are from their own.

    python benchmarks/backbones.py --output FOLDER                 # timm's plain ViTs, transformers' classes
    python benchmarks/backbones.py --output FOLDER --write         # and their tables into docs/backbones.md
    python benchmarks/backbones.py --output FOLDER --only 'timm:*dinov3*'

timm: every name of its modules vision_transformer, eva, beit and deit, with 2 blocks at its own width, and at its own
image size if that has at most 256 patches, else with 16 × 12 patches.
transformers: every class that has a seam, small, with 2 layers; likewise the classes of torchvision and open_clip, if
they are installed. Weights are random, and large where libraries start
with almost nothing: matrices have a deviation of 1/√columns, tables of positions and prefix tokens of 0.5, LayerScale
is 0.1 to 1. So a block or a position that goes wrong cannot hide: "moved" is how much the logits change if each square
gets the position of the next one.

A difference is the largest of any number, divided by the largest number of the right answer, or by 1 if that is
smaller. Bar: 2e-5 in all of these.

    squares     tokens and logits of the wrapped model on square patches, and the backbone's own
    shuffled    the logits of the same squares in another order
    ragged      tokens and logits of two images of different sizes on superpixels, together and alone

A process measures a few names and ends, so that memory stays bounded. Results are lines of backbones.jsonl in --output,
from which a stopped run resumes.
"""

import json
import re
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from comparison.backbones import describe, roughen, tables
from comparison.workers import open_workers
from provenance import ROOT, arguments, import_timm, launch, print_provenance, provenance
from rich.progress import track
from torch import Tensor, nn

import spit
from spit.seams.seam import SEAMS, Seam, find_seam

Record = dict[str, Any]
Case = tuple[str, float]

BAR = 2e-5
SEED = 0
DEPTH = 2
CHUNK = 10  # names that one process measures
PAGE = ROOT / "docs" / "backbones.md"
MARKS = "<!-- written by benchmarks/backbones.py, from here -->", "<!-- to here -->"
MODULES = ("vision_transformer", "eva", "beit", "deit")  # of timm.models
MOST = 256  # patches of an image
FEWER = 16, 12  # patches of an image where a model has more
SHORT: tuple[dict[str, Any], ...] = ({"depth": DEPTH}, {"depth": DEPTH, "num_kv_heads": 4}, {})  # the first that fits
TINY = {"hidden_size": 64, "num_hidden_layers": DEPTH, "num_attention_heads": 4, "intermediate_size": 128,
        "image_size": 64, "patch_size": 8, "num_patches": 64, "projection_dim": 24, "num_register_tokens": 4,
        "use_relative_position_bias": True}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "torchvision:VisionTransformer": ("torchvision.models.vision_transformer", {
        "image_size": 64, "patch_size": 8, "num_layers": DEPTH, "num_heads": 4, "hidden_dim": 64, "mlp_dim": 128}),
    "open_clip:VisionTransformer": ("open_clip.transformer", {
        "image_size": 64, "patch_size": 8, "width": 64, "layers": DEPTH, "heads": 4, "mlp_ratio": 2.0,
        "output_dim": 24})}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder for the results")
    parser.add_argument("--only", action="append", default=[], help="names to measure, with * (default: all)")
    parser.add_argument("--memory", type=float, default=12, help="GiB that a process may take")
    parser.add_argument("--again", action="store_true", help="measure again what was refused or failed")
    parser.add_argument("--write", action="store_true", help="put the tables of all results into docs/backbones.md")
    args = parser.parse_args()
    versions = ", ".join(f"{name} {version}" for name, version in find_libraries().items())
    names = [name for name in all_names() if not args.only or any(fnmatch(name, one) for one in args.only)]
    if not names:
        raise spit.SpitError(f"expected names of backbones, such as timm:deit_*, got {', '.join(args.only)}")
    args.output.mkdir(parents=True, exist_ok=True)
    path = args.output / "backbones.jsonl"
    known = {record["name"]: record for record in read_records(path)}
    wanted = [name for name in names if name not in known or (args.again and "error" in known[name])]
    data = f"random weights and images; {versions}"
    print_provenance(data, SEED)
    for record in track(measured(wanted, args.memory), "backbones", len(wanted)):
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
    known = {record["name"]: record for record in read_records(path)}
    text = tables([known[name] for name in names], BAR)
    print(text)
    if args.write:
        lines = (" ".join(line.split()) for line in provenance(data, SEED))
        write(PAGE, f"`python benchmarks/backbones.py --output FOLDER --write`; {'; '.join(lines)}.\n\n{text}")


def find_libraries() -> dict[str, str]:
    """The versions of timm and transformers."""
    try:
        return {module.__name__: module.__version__ for module in (import_timm(), import_module("transformers"))}
    except ImportError as error:
        raise spit.MissingExtra("timm and transformers", "timm,transformers", "measuring backbones") from error


def all_names() -> list[str]:
    """``timm:NAME`` of every plain ViT, ``hf:CLASS`` of every class of transformers with a seam, and other classes."""
    models = import_timm().models
    return [*(f"timm:{name}" for module in MODULES for name in models.list_models(module=module)),
            *(f"hf:{name.rpartition('.')[2]}" for name in SEAMS if name.startswith("transformers.")
              and "timm" not in name), *(name for name in OTHERS if find_spec(name.partition(":")[0]))]


def read_records(path: Path) -> list[Record]:
    """The results of earlier runs; a line that was not finished is left out."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def measured(names: Sequence[str], memory: float) -> Iterator[Record]:
    """The result of each name, in processes of a few names each."""
    for start in range(0, len(names), CHUNK):
        with open_workers(1) as workers, closing(workers(measure, [(name, memory) for name in names[start:][:CHUNK]])
                                                 ) as records:
            yield from records


def measure(case: Case) -> Record:
    """All that is told about one backbone, or why it is not wrapped."""
    name, memory = case
    limit = int(memory * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # beyond it, torch raises an error
    record: Record = {"name": name}
    start = time.perf_counter()
    try:
        module, record["made"] = make(name)
        roughen(module, torch.Generator().manual_seed(SEED))
        record["class"] = f"{type(module).__module__.partition('.')[0]}.{type(module).__name__}"
        seam = find_seam(module)
        record |= describe(seam)
        record |= compare(seam)
    except Exception as error:  # of any library; the table says which
        record["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return {**record, "seconds": round(time.perf_counter() - start, 1)}


def make(name: str) -> tuple[nn.Module, str]:
    """A backbone with new weights, short if its constructor allows it, and how it was made."""
    torch.manual_seed(SEED)
    library, _, own = name.partition(":")
    timm = import_timm()
    if library == "hf":
        cls = getattr(import_module("transformers"), own)
        return cls(tiny(cls.config_class)).eval(), json.dumps(TINY)
    if name in OTHERS:
        package, options = OTHERS[name]
        return getattr(import_module(package), own)(**options).eval(), json.dumps(options)
    _, *size = timm.get_pretrained_cfg(own).input_size
    patch = int(found[1]) if (found := re.search(r"patch(\d+)", own)) else 16
    sized = {"img_size": tuple(side * patch for side in FEWER)} if size[0] * size[1] > MOST * patch**2 else {}
    for short in SHORT:
        options = {**short, **sized}
        with suppress(AssertionError):  # of a constructor that does not take them together
            return timm.create_model(own, **options).eval(), json.dumps(options)
    raise spit.SpitError("its constructor takes none of these options")


def tiny(kind: Any) -> Any:
    """A small config of a class of transformers."""
    if "vision_config" in (known := signature(kind).parameters):
        return kind(vision_config=tiny(kind.sub_configs["vision_config"]).to_dict())
    return kind(**{key: value for key, value in TINY.items() if key in known})


@torch.inference_mode()
def compare(seam: Seam) -> Record:
    """The differences, see the head of this file."""
    random = torch.Generator().manual_seed(SEED + 1)
    model = spit.wrap(seam.module)
    squares = model.with_tokenizer("patch", size=seam.patch)
    images = torch.rand(1, seam.channels, *seam.size, generator=random)
    mean, std = (torch.tensor(values)[:, None, None] for values in (squares.embedder.mean, squares.embedder.std))
    own_tokens, own_logits = own_answer(seam, (images - mean) / std)
    partition, features = squares.tokenize(images)
    tokens, logits = answer(squares, features)
    own_logits = logits if own_logits is None else own_logits
    record = {"squares": [gap(tokens, own_tokens.flatten(0, 1)), gap(logits, own_logits)]}
    order = torch.randperm(seam.grid[0] * seam.grid[1], generator=random)
    shuffled = model.with_tokenizer(partial(shuffle, partition.labels, order))
    record["shuffled"] = gap(shuffled(images), own_logits)
    moved = features.values.clone()
    cells = seam.grid[0] * seam.grid[1]
    moved[:, -cells:] = moved[:, -cells:].roll(1, 0)
    record["moved"] = gap(answer(squares, features.replace(moved))[1], own_logits)
    side = seam.patch
    ragged = [torch.rand(seam.channels, height, width, generator=random)
              for height, width in ((8 * side, 6 * side + side // 2), (5 * side, 9 * side))]
    together, alone = model(ragged, record=()), [model([image], record=()) for image in ragged]
    record["counts"] = together.partition.host_counts
    record["ragged"] = max(gap(together.logits, torch.cat([one.logits for one in alone])),
                           gap(together.tokens.values, torch.cat([one.tokens.values for one in alone])))
    try:
        maps = model(ragged, record=("attention",)).attention
        record["attention"] = all(gap(one.sum(-1), torch.ones(one.shape[:-1])) < BAR for layer in maps.values()
                                  for one in layer)
    except ValueError as error:
        record["attention"] = False
        record["unrecorded"] = str(error)
    return record


def own_answer(seam: Seam, images: Tensor) -> tuple[Tensor, Tensor | None]:
    """Tokens and logits of the backbone itself, which for timm do not go through the seam."""
    module: Any = seam.module
    if not type(module).__module__.startswith("timm."):
        return seam.answer(images)
    logits = module(images)
    return module.forward_features(images), logits if logits.ndim == 2 else None


def answer(model: Any, features: spit.Tokens) -> tuple[Tensor, Tensor]:
    """Tokens, those of the prefix included, and logits."""
    encoded = model.encode(features)
    return encoded.values, model.head(model.summary(encoded))


def shuffle(labels: Tensor, order: Tensor, images: Any) -> spit.Partition:
    """The regions of a label map in another order."""
    return spit.Partition.from_labels(order[labels.long()])


def gap(given: Tensor, expected: Tensor) -> float:
    """The largest difference, over the largest expected number or 1."""
    if given.shape != expected.shape:
        raise spit.SpitError(f"expected a shape of {tuple(expected.shape)}, got {tuple(given.shape)}")
    return float((given - expected).abs().max() / expected.abs().max().clamp(min=1))


def write(page: Path, text: str) -> None:
    """Replace what is between the two marks of a page."""
    before, _, rest = page.read_text().partition(MARKS[0])
    _, mark, after = rest.partition(MARKS[1])
    if not mark:
        raise spit.SpitError(f"expected the lines {MARKS[0]} and {MARKS[1]} in {page}")
    page.write_text(f"{before}{MARKS[0]}\n\n{text}\n{MARKS[1]}{after}")


if __name__ == "__main__":
    launch(main)
