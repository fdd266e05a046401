"""A table of the paper by the paper's own protocol, one command each. Table 5 is superpixels.py's.

    python benchmarks/table.py 1 --data imagenet/val --real real.json --model MODEL   # --train FOLDER: kNN
    python benchmarks/table.py 2 --data imagenet/val --model MODEL
    python benchmarks/table.py 3 --data ECSSD --model MODEL                           # --baseline MODEL: E1
    python benchmarks/table.py 4 --data imagenet/val --model MODEL
    python benchmarks/table.py B1 --data imagenet/train
    python benchmarks/table.py B2 --data imagenet/val --model MODEL --size 384
    python benchmarks/table.py G1 --data imagenet/val --model rvit_tiny_16

1, 4, G1: ImageNet at the size that a model was last trained at, images of other data sets rescaled whole to 256² (App.
C); five runs of a model on Voronoi cells, with Student's interval over them (Table G1). The paper gives neither its
crop of ImageNet nor k and temperature of kNN; k = 20 and 0.07 are DINO's. 2: Comp and Suff of LIME (p is the chance
that a region is kept, and omitted tokens are dropped, as in the authors' release), flow through all layers, the
prototypes' first principal component, and a random control. 3: final tokens, τ = 1/3, and the foreground is the side
whose class token is nearer to the whole image's (App. E); images keep their size, which the paper does not say. B1: the
regions of every level at 224, 256 and 384 pixels, or --size, of the release's tokenizer, or --tokenizer superpixel. B2:
tokens, images/s and accuracy when neighbours are merged, at thresholds that leave the paper's shares of tokens, or
--equal-thresholds. --output gets results.json, .md and .tex, and images.jsonl, from which a stopped run resumes.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from provenance import arguments, launch, open_runner, print_provenance
from tables.counts import PAPER, Counts
from tables.protocols import CUT, METHODS, reading, squares
from tables.runs import OverRuns
from tables.swap import Swap
from tables.threshold import Threshold

import spit
from spit.devices import choose_device
from spit.evaluation.classification import Head
from spit.evaluation.faithfulness import FaithfulnessProtocol, Methods, cases_of
from spit.evaluation.masks import find_samples
from spit.evaluation.runner import Protocol
from spit.evaluation.saliency import Saliency, SaliencyCase, baseline_cases
from spit.evaluation.samples import find_images, labelled_folder, one_part, spread
from spit.tokenizers import NestedTokenizer

Args = argparse.Namespace


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--data", type=Path, required=True, help="folder of images, see docs/data.md")
    parser.add_argument("--model", action="append", default=[], help="a name, a folder or a file of weights; several "
                                                                     "with commas")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--size", type=int, help="pixels of a side; by default the table's")
    parser.add_argument("--batch", type=int, help="images in a batch; by default the protocol's")
    parser.add_argument("--limit", type=int, help="only so many images, spread over the set")
    parser.add_argument("--output", type=Path, help="folder for the results, from which a stopped run resumes")
    parser.add_argument("--real", type=Path, help="1, G1: ReaL labels")
    parser.add_argument("--train", type=Path, help="1: labelled images, for the nearest neighbours of class tokens")
    parser.add_argument("--method", action="append", help=f"2: methods, by default {', '.join(METHODS)}")
    parser.add_argument("--prototypes", type=Path, action="append", default=[], help="2: files of prototypes")
    parser.add_argument("--baseline", help="3: a model on square patches under TokenCut's own settings")
    parser.add_argument("--tokenizer", default="published", choices=("published", "superpixel"), help="B1: whose")
    parser.add_argument("--interpolation", default="bicubic", choices=("bicubic", "bilinear"), help="B1: of squares")
    parser.add_argument("--equal-thresholds", action="store_true", help="B2: the paper's thresholds, not its shares")
    args = parser.parse_args()
    args.model = [name for names in args.model or ["spit_tiny_16"] for name in names.split(",")]
    protocol = TABLES[args.table](args)
    print_provenance(f"{args.data}, {len(protocol.samples)} images", seed=0)
    start = time.perf_counter()
    with open_runner(args.output, args.batch) as runner:
        report = runner.evaluate(protocol)
    print(f"{report.markdown()}\n{time.perf_counter() - start:.0f} s in all")
    if args.output is not None:
        for name, data in report.files().items():
            (args.output / name).write_bytes(data)


def classification(args: Args) -> Protocol:
    head = Head(real=args.real, head="knn" if args.train else "logits", train=args.train)
    test, train, real = head.folders(args.data, args.limit)
    models = [squares(one, test, args.size) for one in load(args)]
    return OverRuns(models, test, head, train, real)


def faithfulness(args: Args) -> Protocol:
    samples = spread(one_part(args.data), args.limit)
    methods = Methods(tuple(args.method or METHODS), prototypes=tuple(args.prototypes), measure=("comp",))
    return FaithfulnessProtocol(args.data, samples, cases_of(reading(methods), load(args, args.size)))


def saliency(args: Args) -> Protocol:
    samples = spread(find_samples(args.data), args.limit)
    cases = [SaliencyCase(one, CUT.replace(size=args.size)) for one in load(args)]
    if args.baseline is not None:
        cases += baseline_cases(spit.load(args.baseline, args.device), args.size)
    return Saliency(args.data, samples, cases)


def swap(args: Args) -> Protocol:
    test = labelled_folder(args.data).spread(args.limit)
    return Swap([squares(one, test, args.size) for one in load(args)], test)


def counts(args: Args) -> Protocol:
    tokenizer = cast(NestedTokenizer, spit.create_tokenizer(args.tokenizer))
    samples = spread(find_images(args.data), args.limit)
    return Counts(args.data, samples, PAPER if args.size is None else (args.size,), tokenizer,
                  choose_device(args.device), args.interpolation)


def threshold(args: Args) -> Protocol:
    test = labelled_folder(args.data).spread(args.limit)
    return Threshold(load(args, args.size), test, not args.equal_thresholds)


def load(args: Args, size: int | None = None) -> list[spit.Predictor]:
    return [spit.load(source, args.device, size) for source in args.model]


TABLES: dict[str, Callable[[Args], Protocol]] = {
    "1": classification, "2": faithfulness, "3": saliency, "4": swap, "B1": counts, "B2": threshold,
    "G1": classification}


if __name__ == "__main__":
    launch(main)
