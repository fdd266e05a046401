"""What each choice of the retrofit brings: short runs that differ in one thing, and where a step's time goes.

    python benchmarks/retrofit.py --parent vit.safetensors --images 'photos-*.tar' --validation imagenet_val1k [--parts]

All runs see the same photos for as many samples; accuracy is top-1 of the averaged weights on the
validation photos, none of which is trained on, before and after. Runs are short, so differences are what counts.
``--start MODEL --samples 0 --variant base "keep 0.1" "keep 0.2"`` measures what distill.keep is worth to
a trained student.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch
from provenance import arguments, launch, print_provenance

from spit.bench import median_ms
from spit.data.photos import Photos
from spit.registry import load_model
from spit.training.augment import AugmentConfig, apply, draw
from spit.training.batches import Batch, Batches
from spit.training.distill import STUDENT, Distillation, DistillConfig, student_of
from spit.training.distributed import Team
from spit.training.loop import fit
from spit.training.recipe import DataRecipe, Optimization, RunRecipe
from spit.training.retrofit import RetrofitRecipe
from spit.training.validate import Validation

SEED = 0
BASE = {
    "batch": 1024, "lr": 2.5e-4, "logits": 1.0, "class_token": 1.0, "tokens": 10.0, "embedder_rate": 4.0,
    "scale": 0.35, "budget": 288,
    "policies": ("none",), "cutmix_share": 0.5, "gradients": True, "size": 224,
    "tokenizer": "superpixel", "options": STUDENT["tokenizer_options"], "fill": "image",
    "keep": 0.0,
}
PAPER = {"compactness": 0.0, "self_loop": "clipped"}
VARIANTS = {
    "base": {},
    "lr 1e-3": {"lr": 1e-3},
    "lr 5.5e-4": {"lr": 5.5e-4},
    "lr 1.2e-4": {"lr": 1.2e-4},
    "no tokens": {"tokens": 0.0},
    "tokens 25 times": {"tokens": 25.0},
    "tokens 3 times": {"tokens": 3.0},
    "logits alone": {"tokens": 0.0, "class_token": 0.0},
    "colour changes": {"policies": ("none", "three")},
    "no CutMix": {"cutmix_share": 0.0},
    "batch 512, lr 1.8e-4": {"batch": 512, "lr": 1.8e-4},
    "batch 256, lr 1.2e-4": {"batch": 256, "lr": 1.2e-4},
    "batch 256": {"batch": 256},
    "γ 10 times": {"embedder_rate": 10.0},
    "larger crops": {"scale": 0.5},
    "smaller crops": {"scale": 0.08},
    "160 tokens at most": {"budget": 160},
    "hard": {"scale": 0.08, "policies": ("rand", "three"), "cutmix_share": 1.0},
    "batch 128": {"batch": 128},
    "160 px": {"size": 160},
    "192 px": {"size": 192},
    "not compact": {"options": PAPER},
    "compactness 0.4": {"options": {"compactness": 0.4, "self_loop": "none"}},
    "with the self-loop": {"options": {"compactness": 0.8, "self_loop": "clipped"}},
    "256 px": {"size": 256},
    "288 px": {"size": 288},
    "filled with 0": {"fill": "zero"},
    "filled with the mean": {"fill": "mean"},
    "filled with the mean, lr 5.5e-4": {"fill": "mean", "lr": 5.5e-4},
    "not compact, filled with 0": {"options": PAPER, "fill": "zero"},
    "voronoi": {"tokenizer": "voronoi", "options": {}},
    "voronoi, filled with the mean": {"tokenizer": "voronoi", "options": {}, "fill": "mean"},
    **{f"keep {share}": {"keep": share} for share in (0.1, 0.15, 0.2, 0.3)},
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--parent", required=True)
    parser.add_argument("--images", required=True, nargs="+")
    parser.add_argument("--validation", required=True)
    parser.add_argument("--start", help="a student to go on with, in place of one made from the parent")
    parser.add_argument("--samples", type=int, default=300_000, help="of each run; 0 to see the students untrained")
    parser.add_argument("--variant", nargs="*", default=list(VARIANTS), help=f"among {', '.join(VARIANTS)}")
    parser.add_argument("--side", type=int, default=192, help="of the squares that photos are kept as")
    parser.add_argument("--parts", action="store_true", help="time the parts of a step first")
    parser.add_argument("--workers", type=int, default=15)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    team = Team.join(device.type)
    photos = Photos(args.images, args.side)
    batches = Batches(photos, 512, SEED, device, args.workers, resident=True)
    validation = Validation(Photos([args.validation], 224, labelled=True), team, 250, args.workers, True)
    print_provenance(f"{len(photos)} photos, {args.samples} samples a run, on "
                     f"{torch.cuda.get_device_name() if device.type == 'cuda' else 'the CPU'}", SEED)
    if args.parts:
        parts(args, batches, device, 1024 if device.type == "cuda" else 8)
    print(f"\n{'variant':26s} top-1, top-5 and loss before; after; seconds", flush=True)
    for name in args.variant:
        run(name, {**BASE, **VARIANTS[name]}, args, batches, validation, team)


def run(name: str, options: dict, args, batches: Batches, validation: Validation, team: Team) -> None:
    task = make_task(args, options, team.device, validation)
    task.module.eval()
    before = columns(task.validate())
    if not args.samples:
        print(f"{name:26s} {before}", flush=True)
        return
    batches.batch = options["batch"]
    epochs = args.samples / len(batches.photos)
    faster = {"precision": "bf16", "compile": True} if team.device.type == "cuda" else {}
    recipe = RetrofitRecipe(
        data=DataRecipe(size=options["size"]), augment=augment(options), run=RunRecipe(seed=SEED, validate=0,
                                                                                       checkpoint=10**6),
        optimization=Optimization(epochs=epochs, batch=options["batch"], lr=options["lr"], warmup=0.1 * epochs,
                                  ema=0.99, **faster))
    with tempfile.TemporaryDirectory() as folder:
        outcome = fit(task, batches, Path(folder), team, recipe)
    print(f"{name:26s} {before} {columns(outcome.figures)} {outcome.seconds:8.1f}", flush=True)


def columns(figures: Mapping[str, float]) -> str:
    return f"{figures['top1']:6.3f} {figures['top5']:6.3f} {figures['loss']:6.3f}"


def augment(options: dict) -> AugmentConfig:
    return AugmentConfig(scale=(options["scale"], 1.0), policies=options["policies"],
                         cutmix_share=options["cutmix_share"])


def make_task(args, options: dict, device: torch.device, validation: Validation | None = None) -> Distillation:
    teacher = load_model(args.parent).to(device)
    student = load_model(args.start) if args.start else student_of(teacher, {
        "tokenizer": options["tokenizer"], "tokenizer_options": options["options"], "gradients": options["gradients"],
        "token_budget": options["budget"], "fill": options["fill"]})
    student = student.to(device)
    if device.type == "cuda":
        student.compile()
        teacher.compile()
    config = DistillConfig(options["logits"], options["class_token"], options["tokens"],
                           embedder_rate=options["embedder_rate"], keep=options["keep"])
    return Distillation(student, teacher, config, validation, compiled=device.type == "cuda")


def parts(args, batches: Batches, device: torch.device, batch: int) -> None:
    """Milliseconds of each part of a step."""
    task = make_task(args, BASE, device)
    task.module.train()
    images, aspects, _ = (tensor[:batch] for tensor in batches.resident)
    drawn = draw(augment(BASE), len(images), torch.Generator().manual_seed(SEED))
    cropped = apply(images, aspects, drawn, 224)
    given = Batch(cropped, aspects, torch.full((len(images),), -1, device=device), drawn)
    features = task.module.extractor(cropped, task.module.tokenizer(cropped))

    def learn(task: Distillation) -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss, _ = task.loss(task.module, given)
        loss.backward()

    def plain(model: torch.nn.Module) -> torch.Tensor:
        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            return model(cropped)

    def train() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            loss = task.module(cropped).square().mean()
        loss.backward()

    bare = Distillation(task.module, task.parent, task.config.replace(tokens=0.0))
    for name, function in {
        "augmentation": lambda: apply(images, aspects, drawn, 224),
        "augmentation, compiled": lambda: apply(images, aspects, drawn, 224, compiled=device.type == "cuda"),
        "CutMix": lambda: drawn.mix(cropped),
        "tokenizer": lambda: task.module.tokenizer(cropped),
        "features": lambda: task.module.extractor(cropped, task.module.tokenizer(cropped)),
        "parent": lambda: plain(task.parent),
        "student, forward and backward": train,
        "the whole loss and its gradient": lambda: learn(task),
        "the same without tokens": lambda: learn(bare),
    }.items():
        print(f"{name:34s} {median_ms(function, device, rounds=10, warm_up=3):8.2f} ms of {len(images)} images")
    print(f"{len(features.values) / len(images):.0f} tokens an image")


if __name__ == "__main__":
    launch(main)
