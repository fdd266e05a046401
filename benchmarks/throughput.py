"""Images per second of ``spit train``, augmentation and all, beside what ``spit bench`` says the model alone can do.

    python benchmarks/throughput.py --images imagenet_val1k        # on a machine with CUDA

App. C's recipe at 256² in bf16, compiled, photos resident on the device, as `spit train` runs it; the first half of
the steps, which compiles, is not counted. Bar: at least 0.9 of the model alone, which sees one batch again and again.
"""

import tempfile
from pathlib import Path
from statistics import median

import torch
from provenance import arguments, launch, print_provenance

from spit.bench import Timing, measure_stages, photo_batch
from spit.bench.photos import sample_photos
from spit.bench.stages import model_to_time
from spit.data.folders import image_paths
from spit.data.photos import Photos
from spit.data.shards import is_shard
from spit.training.distributed import Team
from spit.training.journal import read_metrics
from spit.training.recipe import DataRecipe, ModelRecipe, Optimization, Recipe, RunRecipe
from spit.training.train import train

SEED = 0
SIZE = 256
BATCHES = {"spit_tiny_16.paper": 1024, "spit_base_16.paper": 256}
LOG = 20


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", required=True, help="photos with classes: a folder of folders, or a shard")
    parser.add_argument("--model", nargs="*", default=list(BATCHES))
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--workers", type=int, default=15)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print_provenance(f"{args.images}, {SIZE}², on "
                     f"{torch.cuda.get_device_name() if device.type == 'cuda' else 'the CPU'}", SEED)
    print("| model | batch | spit train, im/s | the model alone, im/s | share |\n|---|---:|---:|---:|---:|")
    for model in args.model:
        batch = BATCHES.get(model, 256) if device.type == "cuda" else 8
        whole = trained(model, batch, args.images, args.steps, args.workers, device)
        alone = bare(model, batch, args.images, device)
        print(f"| {model} | {batch} | {whole:.0f} | {alone:.0f} | {whole / alone:.3f} |", flush=True)


def trained(model: str, batch: int, images: str, steps: int, workers: int, device: torch.device) -> float:
    """Images per second of a run's second half."""
    epochs = steps * batch / len(Photos([images], SIZE))
    cuda = device.type == "cuda"
    recipe = Recipe(
        ModelRecipe(model, options={"drop_path": 0.2}),
        DataRecipe((images,), side=288, size=SIZE, workers=workers, resident=True),
        optimization=Optimization(epochs=epochs, batch=batch, warmup=0, precision="bf16" if cuda else "fp32",
                                  compile=cuda),
        run=RunRecipe(seed=SEED, log=LOG, checkpoint=10**6, validate=0))
    with tempfile.TemporaryDirectory() as folder:
        train(recipe, Path(folder), Team.join(device.type))
        speeds = [line["images_per_second"] for line in read_metrics(Path(folder)) if line["kind"] == "train"]
    return median(speeds[len(speeds) // 2 :])


def bare(model: str, batch: int, images: str, device: torch.device) -> float:
    """Images per second of forward, backward and optimizer alone."""
    paths = sample_photos() if is_shard(images) else image_paths(images)
    pixels = photo_batch(paths, batch, SIZE, SIZE, SEED).to(device)
    rows = measure_stages(model, model_to_time(model), pixels, Timing())
    return next(row.images_per_second for row in rows if row.stage == "training")


if __name__ == "__main__":
    launch(main)
