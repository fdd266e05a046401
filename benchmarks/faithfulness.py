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

from provenance import launch, load_models, model_arguments, open_runner, print_provenance

import spit
from spit.attribution import fit_prototypes
from spit.attribution.prototypes import find_prototypes
from spit.data.folders import image_paths
from spit.errors import WeightsError
from spit.evaluation.faithfulness import FaithfulnessProtocol, Methods
from spit.evaluation.samples import find_images, spread

METHODS = ("lime", "flow", "prototype", "rollout", "relevance", "random")


def main() -> None:
    parser = model_arguments(__doc__, limit=500)
    parser.add_argument("--method", action="append", help=f"among {', '.join(METHODS)}; by default all")
    parser.add_argument("--samples", type=int, default=256, help="LIME's masks")
    parser.add_argument("--prototypes", type=Path, action="append", default=[], help="files of prototypes")
    parser.add_argument("--fit", type=Path, help="a folder of photos to make missing prototypes from")
    parser.add_argument("--curves", action="store_true", help="with --output: draw deletion and insertion curves there")
    args = parser.parse_args()
    data = args.shared / "data" / "imagenet_val1k"
    samples = spread(find_images(data), args.limit)
    print_provenance(f"imagenet_val1k, {len(samples)} images; LIME with {args.samples} masks", seed=0)
    start = time.perf_counter()
    cases = []
    for model in load_models(args):
        names, files = list(args.method or METHODS), list(args.prototypes)
        if "prototype" in names:
            files += made_prototypes(model, files, args.fit, args.output)
            try:
                about = find_prototypes(model, files).about
                print(f"prototypes of {model.name}: {about['images']} images, labels {about['labels']}, "
                      f"{about['classes_without_images']} classes without images")
            except WeightsError:
                print(f"prototypes of {model.name}: none; --fit makes them")
                names.remove("prototype")
        cases += Methods(tuple(names), args.samples, tuple(files), args.curves).cases([model])
    with open_runner(args.output, args.batch) as runner:
        report = runner.evaluate(FaithfulnessProtocol(data, samples, cases), pictures=bool(args.output and args.curves))
    print(report.markdown())
    for name, picture in report.pictures.items():
        (args.output / name).write_bytes(picture)
    print(f"{time.perf_counter() - start:.0f} s in all")


def made_prototypes(model: spit.Predictor, files: list[Path], photos: Path | None, output: Path | None) -> list[Path]:
    """A file of prototypes that is made now, or that an earlier run made; none if ``files`` have the model's."""
    target = (output or Path("spit-output")) / f"{model.name}.prototypes.safetensors"
    try:
        find_prototypes(model, [*files, *([target] if target.exists() else [])])
        return [target] if target.exists() else []
    except WeightsError:
        if photos is None:
            return []
    print(f"making prototypes of {model.name} from {len(image_paths(photos))} photos of {photos}", flush=True)
    return [fit_prototypes(model.model, photos).save(target)]


if __name__ == "__main__":
    launch(main)
