"""``spit evaluate``: published protocols, one command for each."""

from dataclasses import dataclass

import typer

from spit.answers.segment import Segment
from spit.cli.help import Command, summary
from spit.cli.measuring import Data, Evaluating, measure
from spit.cli.options import Models, Running, TokenizerChoice, command
from spit.evaluation.options import Computing, Head, MaskFolders, Methods, Tokenizers
from spit.options import Options, option

evaluation = typer.Typer(name="evaluate", help="Measure quality by published protocols.\n\nWith --output, a "
                         "second run takes what is measured already from images.jsonl there; beside it are "
                         "results.json, results.md and results.tex (LaTeX, with booktabs).",
                         rich_markup_mode=None)


@dataclass(frozen=True)
class Baseline(Options):
    """What ``spit evaluate saliency`` compares with."""

    baseline: str | None = option(
        None, "Also measure this model on square patches under TokenCut's own settings, on keys and on final tokens",
        metavar="NAME|PATH|HUB_ID")


@dataclass(frozen=True)
class Cutting(Computing):
    """How ``spit evaluate saliency`` computes."""

    batch: int | None = option(None, "Images in a batch (default: 32)", least=1)


def classification(data: Data, models: Models, tokenizers: Tokenizers, head: Head, computing: Computing,
                   evaluating: Evaluating, running: Running) -> int:
    """Accuracy of models on labelled images: top-1, top-5 and ReaL with 95 % intervals (Tables 1, C1 and G1).

    --data has a folder for each class: in sorted order, or named by class index or WordNet id. The short side is
    resized to size/0.875, bicubic, and the central square is classified, as DeiT does. A model on Voronoi cells is run
    five times, seeds 0 to 4: mean and standard deviation. With --tokenizer there is a row for each model and tokenizer.
    """
    from spit.evaluation.classification import Classification

    test, train, real = head.folders(data, evaluating.limit)
    predictors = models.load_measured(running.device, train is None)
    return measure(Classification(predictors, test, head, train, real, tokenizers), evaluating, running, computing)


def swap(data: Data, models: Models, tokenizers: Tokenizers, computing: Computing, evaluating: Evaluating,
         running: Running) -> int:
    """Accuracy of models on other tokenizers than their own, compared image by image (Table 4).

    Top-1 of each model on each --tokenizer, without it on square patches, Voronoi cells and superpixels; the change
    against the model's own tokenizer, or the first if that is not among them, with a 95 % interval of the pairs; the
    mean number of tokens, and images/s. --data has a folder for each class, and models see the central squares, as in
    spit evaluate classification. --output also gets swap.png, .svg and .pdf: accuracy by tokenizer.
    """
    from spit.evaluation.samples import labelled_folder
    from spit.evaluation.swap import Swap

    test = labelled_folder(data).spread(evaluating.limit)
    return measure(Swap(models.load_measured(running.device), test, tokenizers=tokenizers), evaluating, running,
                   computing)


def saliency(data: Data, models: Models, tokenizer: TokenizerChoice, question: Segment,
             baseline: Baseline, folders: MaskFolders, computing: Cutting, evaluating: Evaluating,
             running: Running) -> int:
    """IoU, accuracy and max F of TokenCut on the models' tokens, without any training on masks (Tables 3 and E1).

    --data is ECSSD (images/ and ground_truth_mask/), DUTS, DUT-OMRON, Oxford Pets, or images/ and masks/ of the same
    names. Images keep their size, or have --size. --output also gets a page of pictures for each row.
    """
    from spit.evaluation.masks import find_samples
    from spit.evaluation.saliency import Saliency, SaliencyCase, baseline_cases
    from spit.evaluation.samples import spread
    from spit.predictor import load

    samples = spread(find_samples(data, folders), evaluating.limit)
    cases = [SaliencyCase(one, question.replace(size=models.size)) for one in models.load(running.device, tokenizer)]
    if baseline.baseline is not None:
        cases += baseline_cases(load(baseline.baseline, running.place), models.size)
    return measure(Saliency(data, samples, cases), evaluating, running, computing)


def faithfulness(data: Data, models: Models, methods: Methods, computing: Computing, evaluating: Evaluating,
                 running: Running) -> int:
    """Comprehensiveness and sufficiency of attributions, with 95 % intervals and paired one-sided t-tests (Table 2).

    The drop in the probability of the predicted class when the most important 1, 5, 20 and 50 % of the pixels become
    the image's mean colour (Comp, higher is better), or all others do (Suff, lower is better). Beside them insertion
    and deletion AUC and the time of an explanation. --data has images at any depth. With lime, images with fewer than 5
    SLIC regions are dropped. --output also gets curves.png, .svg and .pdf: deletion and insertion curves.
    """
    from spit.evaluation.faithfulness import FaithfulnessProtocol, cases_of
    from spit.evaluation.samples import one_part, spread

    samples = spread(one_part(data), evaluating.limit)
    cases = cases_of(methods, models.load_classifiers(running.device))
    return measure(FaithfulnessProtocol(data, samples, cases), evaluating, running, computing)


for verb in (classification, swap, saliency, faithfulness):
    evaluation.command(cls=Command, short_help=summary(verb))(command(verb))
