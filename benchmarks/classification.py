"""Classification on real images: accuracy, swapped tokenizers, merged tokens, and transfer to Caltech-101.

    python benchmarks/classification.py [--model NAME|FOLDER]… [--device cuda] [--limit N] [--output FOLDER]

1,000 ImageNet validation images, one for each class, with their ReaL labels (Table 1, Table 4 and App. B's
threshold table of the paper), and Caltech-101: 30 training images a class, the rest tested, kNN and a linear head
over class tokens. The parent of retrofitted models, DeiT-Tiny through ``spit.from_timm``, is always beside them.
"""

import time
from pathlib import Path

import torch
from provenance import arguments, print_provenance
from rich.console import Console
from rich.progress import Progress

from spit.cli.measuring import Measuring
from spit.evaluation import classification, swap, threshold
from spit.evaluation.answers import Examiner, Setup
from spit.evaluation.labelled import labelled_folder, read_real

PER_CLASS = 30


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", action="append", default=[], help="a name, a folder or a file of weights")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--batch", type=int, help="images in a batch; 256 on a GPU, 16 on a CPU")
    parser.add_argument("--limit", type=int, help="only so many images, spread over each set")
    parser.add_argument("--output", type=Path, help="folder for the answers, so that a stopped run goes on")
    args = parser.parse_args()
    data, parent = args.shared / "data", args.shared / "weights" / "deit_tiny_patch16_224.safetensors"
    imagenet = labelled_folder(data / "imagenet_val1k").spread(args.limit)
    train, test = labelled_folder(data / "caltech101").split(PER_CLASS)
    test = test.spread(args.limit)
    print_provenance(f"imagenet_val1k, {len(imagenet.images)} images; caltech101, {len(train.images)} to learn from, "
                     f"{len(test.images)} to test on", seed=0)
    subjects = Measuring(device=args.device).load([*args.model, str(parent)])
    device = torch.device(subjects[0].model.embedder.class_token.device)
    setup = Setup(224, args.batch or (256 if device.type == "cuda" else 16), device)
    start = time.perf_counter()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        with Examiner(setup, args.output and args.output / "images.jsonl", lambda doing, done, total: bar.update(
                task, description=doing, completed=done, total=total)) as examiner:
            real = read_real(data / "imagenet_val1k_real.json", imagenet)
            rows = classification.evaluate(examiner, subjects, imagenet, real=real)
            print(classification.sheet(rows, f"ImageNet, {device}.").markdown())
            print(swap.sheet(swap.evaluate(examiner, subjects, imagenet), f"ImageNet, {device}.").markdown())
            own = [subject for subject in subjects if subject.model.config.tokenizer == "superpixel"]
            if own:
                print(threshold.sheet(threshold.evaluate(examiner, own, imagenet), f"ImageNet, {device}.").markdown())
            rows = [row for kind in ("knn", "linear") for row in classification.evaluate(
                examiner, subjects, test, classification.Head(kind, train))]
            print(classification.sheet(rows, f"Caltech-101, {PER_CLASS} training images a class, {device}.").markdown())
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
