"""Masks by the cut, by the token head and by both, before and after cleaning, from one pass over each image.

    python benchmarks/saliency_methods.py [--data FOLDER] [--model spit_tiny_16] [--every 1]

--data has images and masks as ``spit evaluate saliency`` takes them; the default is ECSSD. The first 200 images are
those that choices were made on; their figures, those of the others and those of all are printed apart.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from provenance import arguments, launch, print_provenance

import spit
from spit.answers import Segment
from spit.evaluation.masks import best_threshold, f_measure, find_samples, read_pair, score
from spit.segmentation.head import head_for

TUNED_ON = 200
CASES = {f"{method}{', clean' if clean else ''}": Segment(method=method, clean=clean, merge=False)
         for clean in (False, True) for method in ("cut", "head", "both")}
Figures = dict[str, Any]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, help="folder of images and masks; by default ECSSD of --shared")
    parser.add_argument("--model", default="spit_tiny_16", help="a model with a token head")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--every", type=int, default=1, help="only every so-many-th image")
    args = parser.parse_args()
    data = args.data or args.shared / "data" / "ecssd"
    samples = find_samples(data)
    predictor = spit.load(args.model, args.device)
    head = head_for(predictor, "head")
    print_provenance(f"{data.name}, every {args.every}. of {len(samples)} images; {args.model}, head "
                     f"{head and head.digest}, {predictor.device}")
    chosen = range(0, len(samples), args.every)
    done: dict[int, dict[str, Figures]] = {}
    for index in chosen:
        image, truth = read_pair(samples[index])
        prediction = predictor(image, crop=False)
        done[index] = {name: _figures(prediction, cut, truth) for name, cut in CASES.items()}
    parts = {f"first {TUNED_ON}": [index for index in chosen if index < TUNED_ON],
             "others": [index for index in chosen if index >= TUNED_ON], "all": list(chosen)}
    print("| images | method | IoU | accuracy | max F (β² = 0.3) |\n|---|---|---:|---:|---:|")
    for title, own in parts.items():
        for name in CASES if own else ():
            _print_row(f"{title} ({len(own)})", name, [done[index][name] for index in own])


def _figures(prediction: spit.Prediction, question: Segment, truth: Any) -> Figures:
    found = question.of(prediction)
    scores = score(found.saliency[0].cpu().numpy(), found.mask[0].cpu().numpy(), truth)
    curve = f_measure(scores.positives, scores.hits, scores.foreground)
    return {"iou": scores.iou, "accuracy": scores.accuracy, "curve": curve, "counted": scores.foreground > 0}


def _print_row(title: str, name: str, figures: Sequence[Figures]) -> None:
    counted = [one for one in figures if one["counted"]]
    curves = [one["curve"] for one in counted]
    max_f = np.mean(curves, axis=0)[best_threshold(curves)]
    iou, accuracy = (np.mean([one[key] for one in counted]) for key in ("iou", "accuracy"))
    print(f"| {title} | {name} | {iou:.4f} | {accuracy:.4f} | {max_f:.4f} |", flush=True)


if __name__ == "__main__":
    launch(main)
