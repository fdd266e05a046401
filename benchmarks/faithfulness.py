"""Table 2: comprehensiveness and sufficiency of every method on every model, by spit's defaults and as in the paper.

    python benchmarks/faithfulness.py [--model NAME|FOLDER]… [--device cuda] [--limit N] [--output FOLDER]

The second table has the paper's choices where they differ: LIME, and the prototypes' principal component. It is what
``table.py 2`` prints; methods that both tables have are measured once. The last table says
how much maps depend on the class: the mean |correlation| of the predicted class's map with those of 20 other classes.

ImageNet validation images, one for each class. The parent of retrofitted models, DeiT-Tiny through
``spit.from_timm``, is always beside them. Prototypes come from --prototypes, with the model, or are made on the spot
from the unlabelled photos of --fit, with the model's own classes; where there are none the method is left out. LIME
takes most of the time: --samples forward passes an image. With --output there are deletion and insertion curves.
"""

import time
from pathlib import Path

import torch
from provenance import launch, load_models, model_arguments, open_runner, print_provenance
from tables.protocols import reading

import spit
from spit.attribution import fit_prototypes
from spit.attribution.prototypes import find_prototypes
from spit.data.folders import image_paths
from spit.errors import WeightsError
from spit.evaluation.faithfulness import FaithfulnessCase, FaithfulnessProtocol, Methods, cases_of
from spit.evaluation.samples import Sample, find_images, spread

OTHERS = 20  # classes
METHODS = ("lime", "token_rise", "relevance", "prototype", "flow", "rollout", "random")


def main() -> None:
    parser = model_arguments(__doc__, limit=500)
    parser.add_argument("--method", action="append", help=f"among {', '.join(METHODS)}; by default all")
    parser.add_argument("--samples", type=int, default=256, help="passes of LIME and of token_rise")
    parser.add_argument("--prototypes", type=Path, action="append", default=[], help="files of prototypes")
    parser.add_argument("--fit", type=Path, help="a folder of photos to make missing prototypes from")
    parser.add_argument("--photos", type=int, default=20, help="photos to measure dependence on the class on")
    args = parser.parse_args()
    data = args.shared / "data" / "imagenet_val1k"
    samples = spread(find_images(data), args.limit)
    print_provenance(f"imagenet_val1k, {len(samples)} images; {args.samples} passes", seed=0)
    start = time.perf_counter()
    tables: tuple[list[FaithfulnessCase], ...] = ([], [])
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
        methods = Methods(tuple(names), args.samples, prototypes=tuple(files))
        for cases, chosen in zip(tables, (methods, reading(methods)), strict=True):
            cases += cases_of(chosen, [model])
    with open_runner(args.output, args.batch) as runner:
        for kind, cases in zip(("", "as-paper-"), tables, strict=True):
            print(f"Protocol: {'as in the paper' if kind else 'the defaults of spit'}\n", flush=True)
            report = runner.evaluate(FaithfulnessProtocol(data, samples, cases),
                                     pictures=bool(args.output))
            print(report.markdown())
            for name, picture in report.pictures.items():
                (args.output / f"{kind}{name}").write_bytes(picture)
    print_dependence(tables[0] + tables[1], spread(samples, args.photos))
    print(f"\n{time.perf_counter() - start:.0f} s in all")


def print_dependence(cases: list[FaithfulnessCase], samples: list[Sample]) -> None:
    """Print a row for each method that is of a class; not for those that ask many times, which would take a day."""
    print(f"| model | method | mean absolute correlation with {OTHERS} other classes, {len(samples)} photos |\n"
          "|---|---|---:|")
    rows = {f"| {case.predictor.name} | {case.method.name} {getattr(case.method, 'form', '')}": case
            for case in cases if case.method.of_class and not hasattr(case.method, "samples")}
    for row, case in rows.items():
        random, found = torch.Generator().manual_seed(0), []
        for sample in samples:
            prediction = case.predictor(case.read(sample), crop=False)
            others = torch.randperm(case.predictor.model.config.num_classes, generator=random)[:OTHERS].tolist()
            maps = [prediction.explain(case.method, target) for target in (int(prediction.logits.argmax()), *others)]
            found.append(torch.corrcoef(torch.cat(maps).flatten(1).double())[0, 1:].abs().mean())
        print(f"{row} | {torch.stack(found).mean():.4f} |", flush=True)


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
