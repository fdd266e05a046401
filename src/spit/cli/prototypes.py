"""``spit prototypes``: fit prototypes of a model's classes, for ``--method prototype``."""

from dataclasses import dataclass

from spit.cli.console import print_json, show, shown, waiting
from spit.cli.measuring import Data, Evaluating
from spit.cli.options import Models, Output, Running
from spit.evaluation.options import BATCHES, Batching
from spit.options import Options, option, same
from spit.wording import plural


@dataclass(frozen=True)
class Fitting(Options):
    """What prototypes are fitted to."""

    labelled: bool = option(False, "Take the class of an image from its folder (default: the model's prediction)")
    limit: int | None = same(Evaluating, "limit", None)


def prototypes(data: Data, models: Models, fitting: Fitting, batching: Batching, output: Output,
               running: Running) -> int:
    """Fit prototypes of a model's classes: five centroids of the class token for each class (App. D).

    --data has photos at any depth; labels are not needed. With --labelled it has a folder for each class, as for `spit
    evaluate classification`. A class without photos gets its row of the head. --output gets
    MODEL.prototypes.safetensors, which `spit explain` and `spit evaluate faithfulness` read with --prototypes.
    """
    from spit.attribution.fitting import fit_prototypes
    from spit.evaluation.classification import check_classes
    from spit.evaluation.samples import find_images, labelled_folder, spread

    models.expect_one()
    folder = labelled_folder(data) if fitting.labelled else None
    samples = spread(find_images(data) if folder is None else folder.images, fitting.limit)
    [predictor] = models.load_classifiers(running.device)
    logits = None if folder is None else check_classes(predictor, folder)
    labels = None if logits is None else [logits[sample.label] for sample in samples]
    size = batching.batch or BATCHES[predictor.device.type == "cuda"]
    batches = ([sample.image for sample in samples[start : start + size]] for start in range(0, len(samples), size))
    with waiting("Class tokens", len(samples)) as say:
        made = fit_prototypes(predictor, batches, labels, size=predictor.size,
                              progress=lambda images: say(done=images))
    file = made.save(output.output / f"{predictor.name}.prototypes.safetensors")
    if running.as_json:
        print_json({"file": str(file), "model": predictor.name, "classes": len(made.counts), **made.about})
        return 0
    without = made.about["classes_without_images"]
    show(f"{plural(len(samples), 'image')}; {without} of {len(made.counts)} classes have none\n"
         f"The prototypes are in {shown(file)}; give them to spit explain with --prototypes")
    return 0
