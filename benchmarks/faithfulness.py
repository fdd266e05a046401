"""Table 2: comprehensiveness and sufficiency of every method on every model, beside the paper's.

    python benchmarks/faithfulness.py [--model NAME|FOLDER]… [--device cuda] [--limit N] [--output FOLDER]
        [--curves]

ImageNet validation images, one for each class. The parent of retrofitted models, DeiT-Tiny through
``spit.from_timm``, is always beside them. Prototypes come from --prototypes, with the model, or are made on the spot
from the unlabelled photos of --fit, with the model's own classes; where there are none the method is left out. LIME
takes most of the time: --samples forward passes an image.
"""

import time
from pathlib import Path

import torch
from provenance import arguments, print_provenance
from rich.console import Console
from rich.progress import Progress

from spit.attribution import choose_methods, fit_prototypes
from spit.attribution.prototypes import find_prototypes
from spit.cli.measuring import Measuring
from spit.data.folders import image_paths
from spit.errors import WeightsError
from spit.evaluation import faithfulness
from spit.evaluation.answers import Setup, Subject
from spit.evaluation.faithfulness_plot import draw_curves

METHODS = ("lime", "flow", "prototype", "rollout", "relevance", "random")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", action="append", default=[], help="a name, a folder or a file of weights")
    parser.add_argument("--method", action="append", help=f"among {', '.join(METHODS)}; all unless told")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--batch", type=int, help="images in a batch; 256 on a GPU, 16 on a CPU")
    parser.add_argument("--limit", type=int, default=500, help="only so many images, spread over the set")
    parser.add_argument("--samples", type=int, default=256, help="LIME's masks")
    parser.add_argument("--prototypes", type=Path, action="append", default=[], help="files of prototypes")
    parser.add_argument("--fit", type=Path, help="a folder of photos to make missing prototypes from")
    parser.add_argument("--output", type=Path, help="folder for the answers, so that a stopped run goes on")
    parser.add_argument("--curves", action="store_true", help="with --output: draw deletion and insertion curves there")
    args = parser.parse_args()
    parent = args.shared / "weights" / "deit_tiny_patch16_224.safetensors"
    folder = faithfulness.plain_folder(args.shared / "data" / "imagenet_val1k").spread(args.limit)
    print_provenance(f"imagenet_val1k, {len(folder.images)} images; LIME with {args.samples} masks", seed=0)
    subjects = Measuring(device=args.device).load([*args.model, str(parent)])
    device = torch.device(subjects[0].model.embedder.class_token.device)
    setup = Setup(224, args.batch or (256 if device.type == "cuda" else 16), device)
    start = time.perf_counter()
    cases = []
    for subject in subjects:
        names, files = list(args.method or METHODS), list(args.prototypes)
        if "prototype" in names:
            files += made_prototypes(subject, files, args.fit, args.output, setup)
            try:
                about = find_prototypes(subject.model, files).about
                print(f"prototypes of {subject.name}: {about['images']} images, labels {about['labels']}, "
                      f"{about['classes_without_images']} classes without images")
            except WeightsError:
                print(f"prototypes of {subject.name}: none; --fit makes them")
                names.remove("prototype")
        cases += [(subject, method) for method in choose_methods(subject.model, names, args.samples, files)]
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        results = faithfulness.evaluate(
            setup, cases, folder, args.output and args.output / "images.jsonl",
            lambda doing, done, total: bar.update(task, description=doing, completed=done, total=total),
            faithfulness.CURVE if args.curves else ())
    rows = faithfulness.summarize(results)
    print(faithfulness.sheet(rows, f"ImageNet, {len(folder.images)} images, {device}.").markdown())
    if args.output and args.curves:
        draw_curves(rows, f"{len(folder.images)} ImageNet images", args.output / "curves.png")
    print(f"{time.perf_counter() - start:.0f} s in all")


def made_prototypes(subject: Subject, files: list[Path], photos: Path | None, output: Path | None,
                    setup: Setup) -> list[Path]:
    """Files of prototypes that were made now, or by an earlier run; none where they are there already."""
    target = (output or Path("spit-output")) / f"{subject.name}.prototypes.safetensors"
    try:
        find_prototypes(subject.model, [*files, *([target] if target.exists() else [])])
        return [target] if target.exists() else []
    except WeightsError:
        if photos is None:
            return []
    total = len(image_paths(photos))
    print(f"making prototypes of {subject.name} from {total} photos of {photos}", flush=True)
    return [fit_prototypes(subject.model, photos, batch=setup.batch).save(target)]


if __name__ == "__main__":
    main()
