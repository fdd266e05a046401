"""An exported model on spit.runtime against torch: labels, classes, logits and accuracy by precision.

    python benchmarks/export.py [--model spit_tiny_16]

Exports the model to ONNX in float32, float16 and int8, and asks each about imagenet_val1k (1,000 images, one a class).
τ and φ run once an image on spit.runtime, without torch's code; the three networks get the same tokens. Bars: in
float32, labels equal bit for bit, the same class on every image, and logits within 1e-4. About 10 minutes on two cores.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from provenance import arguments, launch, print_provenance
from rich.console import Console
from rich.progress import track

import spit
import spit.runtime
from spit.evaluation.samples import Sample, labelled_folder
from spit.export import Exporting, export
from spit.options import declared

PRECISIONS = next(spec.choices for item, _, spec in declared(Exporting) if item.name == "precision")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--model", default="spit_tiny_16", help="a name, a folder or a file of weights")
    parser.add_argument("--limit", type=int, default=1000, help="so many images, spread over the set")
    args = parser.parse_args()
    data = labelled_folder(args.shared / "data" / "imagenet_val1k").spread(args.limit)
    predictor = spit.load(args.model, "cpu")
    with tempfile.TemporaryDirectory() as folder:
        print_provenance(f"imagenet_val1k, {len(data.images)} images at {predictor.size} px; {predictor.name}")
        runtimes = {}
        for precision in PRECISIONS:
            written = export(predictor.model, Path(folder) / f"{precision}.onnx", Exporting(precision=precision))
            runtimes[precision] = spit.runtime.load(written.path, threads=1)
            print(f"{precision:8s} {written.size / 1e6:5.1f} MB, at ten token counts logits within "
                  f"{written.difference:.1e}", flush=True)
        compare(predictor, runtimes, data.images)


def compare(predictor: spit.Predictor, runtimes: dict[str, spit.runtime.Runtime],
            samples: Sequence[Sample]) -> None:
    right = dict.fromkeys(["torch", *PRECISIONS], 0)
    same = dict.fromkeys(PRECISIONS, 0)
    furthest = dict.fromkeys(PRECISIONS, 0.0)
    labels = 0
    first = runtimes["float32"]
    for sample in track(samples, "Asking", transient=True, console=Console(stderr=True)):
        prediction, target = predictor(sample.image), sample.label
        logits = prediction.logits[0].numpy()
        found, given = first.tokenize(first.read(sample.image))
        labels += np.array_equal(found.labels, prediction.partition.labels[0].numpy())
        right["torch"] += int(logits.argmax()) == target
        for precision, runtime in runtimes.items():
            answer = runtime.classify(found, given)
            right[precision] += int(answer.logits.argmax()) == target
            same[precision] += int(answer.logits.argmax()) == int(logits.argmax())
            furthest[precision] = max(furthest[precision], float(np.abs(answer.logits - logits).max()))
    total = len(samples)
    print(f"\nlabels of spit.runtime equal to torch's: {labels} of {total} images\n")
    print("| | top-1 | class as torch's | logits differ by at most |\n|---|---|---|---|")
    print(f"| torch float32 | {right['torch'] / total:.1%} | | |")
    for precision in PRECISIONS:
        print(f"| onnxruntime {precision} | {right[precision] / total:.1%} | {same[precision]} of {total} | "
              f"{furthest[precision]:.1e} |")


if __name__ == "__main__":
    launch(main)
