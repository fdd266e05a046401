"""``spit evaluate faithfulness``: whether attributions point at what a prediction rests on (Table 2)."""

from pathlib import Path
from typing import Annotated

import typer

from spit.cli.measuring import Measuring, Models, about_line, journal, progress_bar
from spit.cli.options import choose_device, listed

DEFAULTS = ("flow", "rollout", "random")

Data = Annotated[Path, typer.Option("--data", metavar="FOLDER", show_default=False,
                                    help="Images, in any folders below; classes are not needed.")]
Methods = Annotated[list[str] | None, typer.Option(
    "--method", "--methods", metavar="NAME", show_default=False,
    help="flow, rollout, prototype, lime, relevance or random; several with commas between, or one by one; flow, "
         "rollout and random unless told.")]
Samples = Annotated[int, typer.Option("--samples", min=1, help="LIME: masks an image, a forward pass each.")]
PrototypeFiles = Annotated[list[Path] | None, typer.Option(
    "--prototypes", metavar="FILE", show_default=False,
    help="Prototypes that spit.attribution.fit_prototypes saved; each model takes those of its own weights, or those "
         "that come with spit; may be given several times.")]
Curves = Annotated[bool, typer.Option("--curves", help="Measure 11 shares of the pixels in place of 4.")]


def faithfulness(measuring: Measuring, data: Data, model: Models, method: Methods = None, samples: Samples = 256,
                 prototypes: PrototypeFiles = None, curves: Curves = False) -> int:
    """Comprehensiveness and sufficiency of attributions, with 95 % intervals and paired one-sided t-tests.

    The drop in the probability of the predicted class when the most important 1, 5, 20 and 50 % of the pixels become
    the image's mean colour (Comp, more is better), or all others do (Suff, less is better). With --output also
    curves.png: deletion and insertion curves.
    """
    import torch

    from spit.attribution.lime import check_lime
    from spit.attribution.methods import choose_methods, create_method
    from spit.evaluation import faithfulness as protocol
    from spit.evaluation.answers import Setup
    from spit.evaluation.faithfulness_plot import check_matplotlib, draw_curves
    from spit.tokens import plural

    folder = protocol.plain_folder(data).spread(measuring.limit)
    names = listed(method or DEFAULTS)
    for name in names:  # unknown names and missing packages are told before models are loaded
        create_method(name)
    if "lime" in names:
        check_lime()
    if measuring.output is not None:
        check_matplotlib()
    place = choose_device(measuring.device)
    subjects = measuring.load(model)
    size = measuring.choose_size(subjects)
    cases = [(subject, made) for subject in subjects
             for made in choose_methods(subject.model, names, samples, prototypes or ())]
    device = torch.device(place)
    setup = Setup(size, measuring.batch or (256 if device.type == "cuda" else 16), device, measuring.precision)
    with progress_bar() as report:
        results = protocol.evaluate(setup, cases, folder, journal(measuring.output), report,
                                    protocol.CURVE if curves else ())
    rows = protocol.summarize(results)
    masks = {"LIME's masks": samples} if "lime" in names else {}
    about = about_line(data, len(folder.images), size=size, precision=measuring.precision,
                       occlusion="the image's mean colour", **masks)
    pictures = []
    if measuring.output is not None:
        pictures.append(measuring.output / "curves.png")
        draw_curves(rows, f"{plural(len(folder.images), 'image')} of {data.resolve().name}", pictures[0])
    measuring.report(protocol.sheet(rows, about), rows, size, pictures=pictures, data=str(data),
                     images=len(folder.images), occlusion="the image's mean colour", quantiles=list(protocol.QUANTILES),
                     options=[{"model": subject.name, "method": made.name, **made.config()} for subject, made in cases],
                     interval="normal, 95 %")
    return 0
