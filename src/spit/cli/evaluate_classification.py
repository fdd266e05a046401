"""``spit evaluate classification``: how often models are right."""

from pathlib import Path
from typing import Annotated

import typer

from spit.cli.measuring import Data, Measuring, Models, about_line

Real = Annotated[Path | None, typer.Option(
    "--real", metavar="JSON", show_default=False,
    help="ReaL labels: a list of classes for each image's path below --data; an empty list leaves the image out.")]
HeadName = Annotated[str, typer.Option(
    "--head", metavar="logits|knn|linear",
    help="The model's own head, or neighbours or a fitted linear head over class tokens.")]
Train = Annotated[Path | None, typer.Option(
    "--train", metavar="FOLDER", show_default=False, help="Labelled images that knn and linear heads learn from.")]
PerClass = Annotated[int | None, typer.Option(
    "--train-per-class", metavar="N", min=1, show_default=False,
    help="In place of --train: learn from so many images of each class of --data, test on the rest (Caltech-101: 30).")]
Seed = Annotated[int, typer.Option("--split-seed", min=0, help="Another seed, other images to learn from.")]
Neighbors = Annotated[int, typer.Option("--neighbors", min=1, help="k of the knn head.")]
Temperature = Annotated[float, typer.Option("--temperature", help="Of the knn head's votes, exp(cosine/temperature).")]


def classification(measuring: Measuring, data: Data, model: Models, real: Real = None, head: HeadName = "logits",
                   train: Train = None, train_per_class: PerClass = None, split_seed: Seed = 0,
                   neighbors: Neighbors = 20, temperature: Temperature = 0.07) -> int:
    """Accuracy of models on labelled images: top-1, top-5, ReaL, with 95 % intervals (Wilson).

    The short side is resized to size/0.875, bicubic, and the central square classified, as the paper and DeiT
    do. A model on Voronoi cells is run five times, seeds 0 to 4: mean and standard deviation.
    """
    from spit.evaluation.classification import Head, evaluate, sheet
    from spit.evaluation.labelled import labelled_folder, read_real
    from spit.tokens import plural

    if head == "logits" and (train is not None or train_per_class is not None):
        raise ValueError("--train and --train-per-class go with --head knn or --head linear")
    if head != "logits" and (train is None) == (train_per_class is None):
        raise ValueError(f"--head {head} learns from images; give one of --train and --train-per-class")
    learned = None if train is None else labelled_folder(train)
    if train_per_class is not None:
        learned, rest = labelled_folder(data).split(train_per_class, split_seed)
        test = rest.spread(measuring.limit)
    else:
        test = measuring.folder(data)
    chosen = Head(head, learned, neighbors, temperature)
    reassessed = None if real is None else read_real(real, test)
    subjects = measuring.load(model)
    size = measuring.choose_size(subjects)
    with measuring.examiner(size) as examiner:
        rows = evaluate(examiner, subjects, test, chosen, reassessed)
    taught = "" if learned is None else f"{plural(len(learned.images), 'image')} of {learned.root}"
    settings = {"size": size, "precision": measuring.precision, **({"taught by": taught} if taught else {})}
    measuring.report(sheet(rows, about_line(data, len(test.images), **settings)), rows, size, data=str(data),
                     images=len(test.images), head=head, train=taught or None, interval="Wilson, 95 %")
    return 0
