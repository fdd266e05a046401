"""Classification on real images: accuracy, swapped tokenizers, merged tokens, and transfer to Caltech-101.

    python benchmarks/classification.py [--model NAME|FOLDER]… [--device cuda] [--limit N] [--output FOLDER]

1,000 ImageNet validation images, one for each class, with their ReaL labels (Table 1, Table 4 and App. B's
threshold table of the paper), and Caltech-101: 30 training images a class, the rest tested, kNN and a linear head
over class tokens. The parent of retrofitted models, DeiT-Tiny through ``spit.from_timm``, is always beside them.
"""

import time

from provenance import launch, load_models, model_arguments, open_runner, print_provenance
from tables.swap import Swap
from tables.threshold import Threshold

from spit.evaluation.classification import Classification, Head
from spit.evaluation.samples import labelled_folder, read_real

PER_CLASS = 30


def main() -> None:
    args = model_arguments(__doc__).parse_args()
    data = args.shared / "data"
    imagenet = labelled_folder(data / "imagenet_val1k").spread(args.limit)
    train, test = labelled_folder(data / "caltech101").split(PER_CLASS)
    test = test.spread(args.limit)
    print_provenance(f"imagenet_val1k, {len(imagenet.images)} images; caltech101, {len(train.images)} to learn from, "
                     f"{len(test.images)} to test on", seed=0)
    models = load_models(args)
    real = read_real(data / "imagenet_val1k_real.json", imagenet)
    protocols = [Classification(models, imagenet, real=real), Swap(models, imagenet)]
    own = [model for model in models if model.model.config.tokenizer == "superpixel"]
    protocols += [Threshold(own, imagenet)] if own else []
    protocols += [Classification(models, test, Head(head=kind), train) for kind in ("knn", "linear")]
    start = time.perf_counter()
    with open_runner(args.output, args.batch) as runner:
        for protocol in protocols:
            print(runner.evaluate(protocol).markdown())
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    launch(main)
