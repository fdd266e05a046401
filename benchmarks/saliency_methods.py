"""Masks by the cut, by the token head and by both, before and after cleaning, from one pass over each image.

    python benchmarks/saliency_methods.py [--data FOLDER] [--model spit_tiny_16] [--every 1] [--output FILE]

--data has images and masks as ``spit evaluate saliency`` takes them; the default is ECSSD. The first 200 images are
those that choices were made on; their figures, those of the others and those of all are printed apart. --output keeps
the figures of each image, and a run that was stopped continues from them.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from provenance import arguments, launch, print_provenance

import spit
from spit.evaluation.masks import best_threshold, f_measure, find_samples, read_pair, score
from spit.segmentation import Cut
from spit.segmentation.head import head_for

TUNED_ON = 200
CASES = {f"{method}{', clean' if clean else ''}": Cut(method=method, clean=clean)
         for clean in (False, True) for method in ("cut", "head", "both")}
Figures = dict[str, Any]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, help="folder of images and masks; by default ECSSD of --shared")
    parser.add_argument("--model", default="spit_tiny_16", help="a model with a token head")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--every", type=int, default=1, help="only every so-many-th image")
    parser.add_argument("--output", type=Path, help="file for the figures of each image")
    args = parser.parse_args()
    data = args.data or args.shared / "data" / "ecssd"
    samples = find_samples(data)
    predictor = spit.load(args.model, args.device)
    head = head_for(predictor, "head")
    print_provenance(f"{data.name}, every {args.every}. of {len(samples)} images; {args.model}, head "
                     f"{head and head.digest}, {predictor.device}")
    chosen = range(0, len(samples), args.every)
    key = f"{predictor.digest} {head and head.digest} {[cut.to_dict() for cut in CASES.values()]}"
    done = dict(_kept(args.output, key))
    for index in chosen:
        if samples[index].name not in done:
            image, truth = read_pair(samples[index])
            prediction = predictor(image, crop=False)
            done[samples[index].name] = {name: _figures(prediction, cut, truth) for name, cut in CASES.items()}
            if args.output is not None:
                with args.output.open("a") as file:
                    file.write(json.dumps({"key": key, "name": samples[index].name,
                                           "cases": done[samples[index].name]}) + "\n")
    parts = {f"first {TUNED_ON}": [index for index in chosen if index < TUNED_ON],
             "others": [index for index in chosen if index >= TUNED_ON], "all": list(chosen)}
    print("| images | method | IoU | accuracy | max F (β² = 0.3) |\n|---|---|---:|---:|---:|")
    for title, own in parts.items():
        for name in CASES if own else ():
            _print_row(f"{title} ({len(own)})", name, [done[samples[index].name][name] for index in own])


def _figures(prediction: spit.Prediction, cut: Cut, truth: Any) -> Figures:
    found = prediction.segment(**cut.to_dict())
    scores = score(found.saliency[0].cpu().numpy(), found.mask[0].cpu().numpy(), truth)
    curve = f_measure(scores.positives, scores.hits, scores.foreground)
    return {"iou": scores.iou, "accuracy": scores.accuracy, "curve": [round(value, 5) for value in curve.tolist()],
            "counted": scores.foreground > 0}


def _print_row(title: str, name: str, figures: Sequence[Figures]) -> None:
    counted = [one for one in figures if one["counted"]]
    curves = [np.array(one["curve"]) for one in counted]
    max_f = np.mean(curves, axis=0)[best_threshold(curves)]
    iou, accuracy = (np.mean([one[key] for one in counted]) for key in ("iou", "accuracy"))
    print(f"| {title} | {name} | {iou:.4f} | {accuracy:.4f} | {max_f:.4f} |", flush=True)


def _kept(file: Path | None, key: str) -> Iterator[tuple[str, dict[str, Figures]]]:
    """Figures of an earlier run with the same weights, head and settings."""
    for line in file.read_text().splitlines() if file is not None and file.exists() else []:
        record = json.loads(line)
        if record["key"] == key:
            yield record["name"], record["cases"]


if __name__ == "__main__":
    launch(main)
