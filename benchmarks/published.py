"""The release's parts beside reference values of the authors' release (docs/published.md).

    python benchmarks/published.py

../shared/golden holds labels, token features and logits of three small models of the release with random weights, on
four crops of BSDS500 test images. Bars: given its labels, features within 2e-3 and logits within 1e-3; our own labels
within 2 % of its counts, and 97 % of the pixels in matching regions.
"""

import numpy as np
import torch
from provenance import arguments, bsds_images, launch, print_provenance
from scipy.optimize import linear_sum_assignment

import spit

NAMES = ("100007", "100039", "100099", "10081")
MODELS = {"spit_grad": ("superpixel", 0.05), "spit_nograd": ("superpixel", 0.025), "vit_grad": ("patch", 0.05)}
THRESHOLDS = (0.05, 0.1, 0.15, 0.2)


def main() -> None:
    args = arguments(__doc__).parse_args()
    paths = {path.stem: path for path in bsds_images(args.shared)}
    images = [_crop(spit.load_image(paths[name])) for name in NAMES]
    print_provenance(f"{args.shared / 'golden'}, central 224² crops of {', '.join(NAMES)}")
    for name, (tokenizer, sigma) in MODELS.items():
        golden = np.load(args.shared / "golden" / f"{name}.npz")
        weights = {key.removeprefix("weights/"): torch.from_numpy(golden[key]) for key in golden.files
                   if key.startswith("weights/")}
        model = spit.from_published(weights, tokenizer, heads=3, sigma=sigma)
        for index, image in enumerate(images):
            theirs = golden[f"labels/{index}"]
            part = spit.Partition.from_labels(theirs)
            with torch.inference_mode():
                tokens = model.extractor(image, part).values.numpy() - golden[f"tokens/{index}"]
                given, own = (one(image)[0].numpy() - golden[f"logits/{index}"]
                              for one in (model.with_tokenizer(lambda _, part=part: part), model))
            print(f"{name} {index}: given its labels features {_bar(np.abs(tokens).max(), 2e-3)}, logits "
                  f"{_bar(np.abs(given).max(), 1e-3)}; own labels {_compare(model.tokenizer(image), theirs)}, logits "
                  f"{np.abs(own).max():.1e}")
        for threshold in THRESHOLDS if tokenizer == "superpixel" else ():
            merged = model.with_tokenizer("superpixel", merge_threshold=threshold).tokenizer(images[0])
            print(f"{name} 0 merged at {threshold}: {_compare(merged, golden[f'labels_th{threshold}/0'])}")


def _crop(image: torch.Tensor) -> torch.Tensor:
    y, x = (image.shape[1] - 224) // 2, (image.shape[2] - 224) // 2
    return image[:, y : y + 224, x : x + 224]


def _bar(error: float, bar: float) -> str:
    return f"{error:.1e} ({'within' if error <= bar else 'NOT within'} {bar:g})"


def _compare(part: spit.Partition, theirs: np.ndarray) -> str:
    """Counts, and the share of pixels in matching regions, each region matched with one at most."""
    ours = part.labels[0].numpy()
    overlap = np.zeros((ours.max() + 1, theirs.max() + 1), np.int64)
    np.add.at(overlap, (ours.ravel(), theirs.ravel()), 1)
    share = overlap[linear_sum_assignment(-overlap)].sum() / ours.size
    near = abs(len(overlap) / overlap.shape[1] - 1)
    return (f"{len(overlap)}/{overlap.shape[1]} regions ({'within' if near <= 0.02 else 'NOT within'} 2 %), "
            f"{share:.4f} matching ({'above' if share >= 0.97 else 'BELOW'} .97)")


if __name__ == "__main__":
    launch(main)
