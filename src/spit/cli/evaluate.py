"""``spit evaluate``: published protocols, one command for each."""

from dataclasses import dataclass

import typer

from spit.cli.help import Command, Group
from spit.cli.measuring import Data, Evaluating, Protocols, measure
from spit.cli.options import Merging, Models, Running, TokenizerChoice, command, flags_given
from spit.evaluation.classification import Classification, Head, as_paper
from spit.evaluation.counts import PAPER, Counts, Resizing
from spit.evaluation.faithfulness import FaithfulnessProtocol, Methods
from spit.evaluation.intervals import over_runs, proportion
from spit.evaluation.masks import MaskFolders, find_samples
from spit.evaluation.runner import Batching, Computing
from spit.evaluation.saliency import AS_PAPER, Saliency, SaliencyCase, baseline_cases
from spit.evaluation.samples import find_images, labelled_folder, one_part, spread
from spit.evaluation.superpixels import Comparing, Comparison
from spit.evaluation.superpixels.data import find_samples as find_segmentations
from spit.evaluation.swap import Swap
from spit.evaluation.threshold import Threshold, Thresholds
from spit.options import Options, option, same
from spit.predictor import load
from spit.segmentation import Cut, looking
from spit.tokenizers import SuperpixelTokenizer

evaluation = typer.Typer(name="evaluate", help="Measure quality by published protocols.\n\nWith --output, a "
                         "second run takes what is measured already from images.jsonl there.",
                         rich_markup_mode=None, cls=Group)


@dataclass(frozen=True)
class Squares(Options):
    """What ``spit evaluate counts`` sees."""

    size: int | None = same(Models, "size", None)


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


@dataclass(frozen=True)
class JsonOnly(Options):
    """How a command answers that runs on the CPU only."""

    as_json: bool = same(Running, "as_json", False)


@command
def superpixels(data: Data, comparing: Comparing, evaluating: Evaluating, answering: JsonOnly) -> int:
    """Compare superpixel algorithms at equal counts of regions against human segmentations (Table 5).

    --data is BSDS500 (images/ and groundTruth/), SBD (images/ and labels/NAME.regions.txt), or images/ and labels/ with
    label maps of the same names: .png (each colour is a label), .npy, .npz or .mat, several for an image as NAME_1.png,
    NAME_2.png, … Explained variation,
    achievable accuracy, undersegmentation error, boundary recall, compactness, connectivity and time. The one parameter
    of each algorithm is searched for until its mean count of 4-connected regions is the wanted one. --output gets
    results.json, results.md, curves.png and images.jsonl, from which a stopped run resumes.
    """
    samples = spread(find_segmentations(data), evaluating.limit)
    methods = comparing.methods()
    return measure(Comparison(data, samples, methods, comparing.count, comparing.workers), evaluating,
                   Running("cpu", answering.as_json))


@command
def classification(data: Data, models: Models, head: Head, protocols: Protocols, computing: Computing,
                   evaluating: Evaluating, running: Running) -> int:
    """Accuracy of models on labelled images: top-1, top-5 and ReaL with 95 % intervals (Tables 1, C1 and G1).

    --data has a folder for each class: in sorted order, or named by class index or WordNet id. The short side is
    resized to size/0.875, bicubic, and the central square is classified, as DeiT does. A model on Voronoi cells is run
    five times, seeds 0 to 4: mean and standard deviation. --as-paper: ImageNet at the size that a model was last
    trained at, images of other data sets rescaled whole to 256² (App. C), and for five runs their own 95 % interval
    (Table G1). The paper gives neither its crop of ImageNet nor k and temperature of kNN; k = 20 and 0.07 are DINO's.
    --output gets results.json, results.md and images.jsonl, from which a stopped run resumes.
    """
    if protocols.as_paper and head.head == "linear":
        raise ValueError("--as-paper goes with --head logits or --head knn; the paper fits no head to class tokens")
    test, train, real = head.folders(data, evaluating.limit)
    predictors = models.load_measured(running.device, train is None)
    if protocols.as_paper:
        predictors = [as_paper(one, test, models.size) for one in predictors]
    scoring = over_runs if protocols.as_paper else proportion
    return measure(Classification(predictors, test, head, train, real, scoring), evaluating, running, computing)


@command
def swap(data: Data, models: Models, protocols: Protocols, computing: Computing, evaluating: Evaluating,
         running: Running) -> int:
    """Accuracy of each model on square patches, Voronoi cells and superpixels, beside the paper's Table 4.

    --data has a folder for each class, as for `spit evaluate classification`. Voronoi cells are drawn five times, seeds
    0 to 4: mean and standard deviation. --as-paper has the sizes of `spit evaluate classification --as-paper`; the
    paper does not say how often it draws cells for this table.
    """
    test = labelled_folder(data).spread(evaluating.limit)
    predictors = models.load_measured(running.device)
    if protocols.as_paper:
        predictors = [as_paper(one, test, models.size) for one in predictors]
    return measure(Swap(predictors, test), evaluating, running, computing)


@command
def threshold(data: Data, models: Models, thresholds: Thresholds, computing: Computing, evaluating: Evaluating,
              running: Running) -> int:
    """Tokens, images/s and accuracy when similar neighbours are merged, beside the paper's table.

    --data has a folder for each class, as for `spit evaluate classification`.
    """
    test = labelled_folder(data).spread(evaluating.limit)
    return measure(Threshold(models.load_measured(running.device), test, thresholds), evaluating, running,
                   computing)


@command
def counts(data: Data, tokenizer: TokenizerChoice, squares: Squares, resizing: Resizing, batching: Batching,
           evaluating: Evaluating, running: Running) -> int:
    """Count the regions of every level of the hierarchy, beside the paper's table.

    --data has images at any depth. Their central squares are resized to 224, 256 and 384 pixels, or to --size. The
    paper's counts are those of its release: --preset published. With --merge-threshold there is one more level.
    """
    chosen = tokenizer.build()
    if not isinstance(chosen, SuperpixelTokenizer):
        raise ValueError(f"only superpixels have levels to count, got --tokenizer {tokenizer.given['tokenizer']}")
    sizes = tuple(PAPER) if squares.size is None else (squares.size,)
    samples = spread(find_images(data), evaluating.limit)
    return measure(Counts(data, samples, sizes, chosen, running.place, resizing.interpolation), evaluating, running,
                   batching)


@command
def saliency(data: Data, models: Models, tokenizer: TokenizerChoice, cut: Cut, protocols: Protocols, baseline: Baseline,
             folders: MaskFolders, merging: Merging, computing: Cutting, evaluating: Evaluating,
             running: Running) -> int:
    """IoU, accuracy and max F of TokenCut on the models' tokens, without any training on masks (Tables 3 and E1).

    --data is ECSSD (images/ and ground_truth_mask/), DUTS, DUT-OMRON, Oxford Pets, or images/ and masks/ of the same
    names. --as-paper cuts as App. E does: final tokens, τ = 1/3, and the foreground is the side whose class token is
    nearer to the whole image's. The paper does not say at which size images are cut; here they keep their own, or
    --size. --output gets results.json, results.md, a page of pictures for each row, and images.jsonl, from which a
    stopped run resumes.
    """
    if protocols.as_paper and cut != Cut():
        raise ValueError(f"--as-paper sets the options of the cut; leave out {' and '.join(flags_given(cut))}")
    cut, merge = (AS_PAPER, False) if protocols.as_paper else (cut, merging.merge)
    samples = spread(find_samples(data, folders), evaluating.limit)
    cases = [SaliencyCase(looking(one, cut, merge), cut, models.size)
             for one in models.load(running.device, tokenizer)]
    if baseline.baseline is not None:
        cases += baseline_cases(load(baseline.baseline, running.place), models.size)
    return measure(Saliency(data, samples, cases), evaluating, running, computing)


@command
def faithfulness(data: Data, models: Models, methods: Methods, protocols: Protocols, computing: Computing,
                 evaluating: Evaluating, running: Running) -> int:
    """Comprehensiveness and sufficiency of attributions, with 95 % intervals and paired one-sided t-tests (Table 2).

    The drop in the probability of the predicted class when the most important 1, 5, 20 and 50 % of the pixels become
    the image's mean colour (Comp, higher is better), or all others do (Suff, lower is better). Beside them insertion
    and deletion AUC and the time of an explanation; --measure adds ROAD, SaCo, the randomised model and the pointing
    game. --data has images at any depth; for the pointing game also masks, as for `spit evaluate saliency`. With lime,
    images with fewer than 5 SLIC regions are dropped. --as-paper sets --lime-p keep, --lime-remove tokens, --flow-skip
    0 and --prototype-form paper, and measures Comp and Suff of lime, flow, prototype and random if no --method is
    given. --output also gets curves.png: deletion and insertion curves.
    """
    methods = methods.as_paper() if protocols.as_paper else methods
    found = find_samples(data, MaskFolders()) if "pointing" in methods.measures else one_part(data)
    cases = methods.cases(models.load_classifiers(running.device))
    return measure(FaithfulnessProtocol(data, spread(found, evaluating.limit), cases), evaluating, running, computing)


for verb in (superpixels, classification, swap, threshold, counts, saliency, faithfulness):
    evaluation.command(cls=Command)(verb)
