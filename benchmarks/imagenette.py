"""Table 1 in small: ViT, RViT and SPiT from scratch on Imagenette, each with and without gradient features.

    python benchmarks/imagenette.py --photos imagenette --output runs/imagenette        # on a machine with CUDA

One recipe, recipes/imagenette_tiny.toml; only tokens and features differ. Every sixth training photo of a class and
ILSVRC's validation photos, which their names tell, are tested on, the others trained on. A model that is in --output
already is not trained again. Accuracy is of the trained head and of the 20 nearest class tokens; five runs for RViT.
"""

from pathlib import Path

import torch
from provenance import ROOT, arguments, launch, print_provenance

from spit.data.folders import image_paths
from spit.evaluation.classification import Classification, Head
from spit.evaluation.runner import Runner
from spit.evaluation.samples import labelled_folder
from spit.predictor import load
from spit.training.distributed import Team
from spit.training.recipe import Recipe
from spit.training.train import train

RECIPE = ROOT / "recipes" / "imagenette_tiny.toml"
VALIDATION = "ILSVRC2012_val"
TESTED = 6  # one photo of a class in so many
SIZE = 160


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--photos", type=Path, required=True, help="Imagenette, a folder of each class somewhere in it")
    parser.add_argument("--output", type=Path, required=True, help="folder for the split, the runs and the answers")
    parser.add_argument("--set", action="append", default=[], dest="changes", help="KEY=VALUE of the recipe")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    args = parser.parse_args()
    device = "cuda" if args.device != "cpu" and torch.cuda.is_available() else "cpu"
    data = split(args.photos, args.output / "photos")
    folders = [args.output / f"{name}_{'gradients' if gradients else 'plain'}"
               for name in ("vit", "rvit", "spit") for gradients in (False, True)]
    print_provenance(f"Imagenette, {len(image_paths(data / 'train'))} photos to train on, "
                     f"{len(image_paths(data / 'test'))} to test on, {SIZE} px, {device}", seed=0)
    for folder in folders:
        if not (folder / "model").is_dir():
            name, _, features = folder.name.partition("_")
            train(Recipe.read(RECIPE, [
                f"model.name={name}_tiny_16.paper", f"model.options.gradients={str(features == 'gradients').lower()}",
                f'data.train=["{data}/train"]', f'data.validation=["{data}/test"]', *args.changes]), folder,
                Team.join(device))
    predictors = [load(str(folder / "model"), device, SIZE) for folder in folders]
    for folder, predictor in zip(folders, predictors, strict=True):
        predictor.name = folder.name
    learnt, tested = labelled_folder(data / "train"), labelled_folder(data / "test")
    with Runner(args.output / "images.jsonl", batch=256 if device == "cuda" else 64) as runner:
        print(runner.evaluate(Classification(predictors, tested)).markdown())
        print(runner.evaluate(Classification(predictors, tested, Head(head="knn"), learnt)).markdown())


def split(photos: Path, target: Path) -> Path:
    """``target/train`` and ``target/test``, a folder of links for each class."""
    seen: dict[str, int] = {}
    for path in image_paths(photos):
        held = path.name.startswith(VALIDATION)
        seen[path.parent.name] = seen.get(path.parent.name, 0) + (not held)
        kind = "test" if held or seen[path.parent.name] % TESTED == 0 else "train"
        link = target / kind / path.parent.name / path.name
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.resolve())
    return target


if __name__ == "__main__":
    launch(main)
