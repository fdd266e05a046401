"""``spit evaluate saliency``: unsupervised masks against human ones (Table 3)."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from spit.cli.cutting import Cutting, with_options
from spit.cli.measuring import Limit, Measuring, Models, about_line, check_output, journal, progress_bar, report
from spit.cli.options import AsJson, Device, TokenizerOptions, choose_device
from spit.cli.outputs import write_files

Data = Annotated[Path, typer.Option(
    "--data", metavar="FOLDER", show_default=False,
    help="ECSSD (images/ and ground_truth_mask/), DUTS, DUT-OMRON, Oxford Pets, or images/ and masks/ of the same "
         "names.")]
ImageFolder = Annotated[str | None, typer.Option("--images", metavar="NAME", show_default=False,
                                                 help="Another folder of images below --data; with --masks.")]
MaskFolder = Annotated[str | None, typer.Option("--masks", metavar="NAME", show_default=False,
                                                help="Another folder of masks below --data; with --images.")]
Baseline = Annotated[str | None, typer.Option(
    "--baseline", metavar="NAME|PATH|HUB_ID", show_default=False,
    help="Also this model on square patches under TokenCut's own settings: from keys and from final features.")]
First = Annotated[int | None, typer.Option(
    "--first", min=1, show_default=False, help="Only the first so many images, to tune on; --limit spreads instead.")]
Batch = Annotated[int | None, typer.Option("--batch", min=1, show_default=False,
                                           help="Images in a batch; 32 on a GPU, 1 on a CPU unless told.")]
Output = Annotated[Path | None, typer.Option(
    "--output", "-o", metavar="FOLDER", show_default=False,
    help="Write results.json, results.md, images.jsonl and a page of pictures for each row there. A run that was "
         "stopped goes on from images.jsonl.")]


def saliency(cutting: Cutting, tokenizer: TokenizerOptions, data: Data, model: Models, baseline: Baseline = None,
             images: ImageFolder = None, masks: MaskFolder = None, first: First = None, limit: Limit = None,
             batch: Batch = None, device: Device = "auto", output: Output = None, as_json: AsJson = False) -> int:
    """Max F, IoU and accuracy of TokenCut on the models' tokens, without any training on masks."""
    from spit.evaluation.answers import Subject
    from spit.evaluation.saliency import TOKENCUT, Contender, evaluate, sheet
    from spit.evaluation.saliency_data import find_samples

    place = choose_device(device)
    check_output(output)
    cut = cutting.cut()
    samples = find_samples(data, images, masks)[:first]
    if limit is not None and limit < len(samples):
        samples = [samples[index * len(samples) // limit] for index in range(limit)]
    loading = Measuring(device=device)
    contenders = []
    for subject in loading.load(model):
        cut.layer_of(subject.model.config.depth)
        changed = with_options(subject.model, tokenizer).to(place).eval()
        contenders.append(Contender(replace(subject, model=changed), cut))
    if baseline is not None:
        [plain] = loading.load([baseline])
        patches = _square(plain)
        square = Subject(f"{plain.name} (baseline)", patches, plain.digest)
        contenders += [Contender(square, replace(way, size=cut.size)) for way in TOKENCUT]
    with progress_bar() as show:
        rows = evaluate(contenders, samples, journal(output), batch or (32 if place != "cpu" else 1), show)
    pages = [] if output is None else _draw(contenders, rows, samples, output)
    report(sheet(rows, about_line(data, len(samples))), rows, output, as_json, pages, data=str(data),
           images=len(samples), device=place)
    return 0


def _square(subject: Any) -> Any:
    """The model on square patches; a ViT that came in timm's names keeps its own."""
    own = subject.model.config
    return subject.model if own.tokenizer == "patch" else subject.model.with_tokenizer("patch").eval()


def _draw(contenders: list[Any], rows: list[Any], samples: list[Any], output: Path) -> list[Path]:
    from spit.drawing import encode_png
    from spit.evaluation.saliency_page import draw_page

    pages = {output / f"page_{number}_{Path(row.model).name.split(' ')[0]}_{row.cut['features']}.png":
             encode_png(draw_page(contender, row, samples))
             for number, (contender, row) in enumerate(zip(contenders, rows, strict=True), start=1)}
    write_files(pages)
    return list(pages)
