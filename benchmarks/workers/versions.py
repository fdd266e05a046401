"""The cases that versions.py asks of a tree: a case on each line of stdin, CPU seconds and a digest on each of stdout.

    PYTHONPATH=TREE/src python benchmarks/workers/versions.py TREE/src 1

It imports nothing of benchmarks/, which go with the spit of this tree.
"""

import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from skimage import data

import spit


def main() -> None:
    cases = prepare(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        name = line.strip()
        if name == "cases":
            print(json.dumps([*cases]), flush=True)
            continue
        begin = time.process_time()
        answer = cases[name]()
        seconds = time.process_time() - begin
        print(json.dumps({"seconds": seconds, "digest": digest(answer)}), flush=True)


def prepare(folder: str, threads: int) -> dict[str, Callable[[], Any]]:
    if not Path(spit.__file__).is_relative_to(folder):
        raise spit.SpitError(f"expected spit from {folder}, got {spit.__file__}")
    torch.set_num_threads(threads)
    getattr(spit.kernels, "compile_at_once", lambda: None)()  # versions before 0.2 compile beside the first calls
    photos = [data.astronaut(), data.chelsea(), data.coffee(), data.rocket()]

    def batch(width: int, height: int) -> torch.Tensor:
        pixels = [np.asarray(Image.fromarray(photo).resize((width, height), Image.Resampling.BICUBIC))
                  for photo in photos]
        return torch.from_numpy(np.stack(pixels)).movedim(-1, 1).contiguous()

    images = {(height, width): batch(width, height) for height, width in ((224, 224), (256, 256), (321, 481))}
    tokenizer, shipped = spit.SuperpixelTokenizer(), spit.load_model("spit_tiny_16").tokenizer
    extractor = spit.FeatureExtractor()
    part = tokenizer(images[224, 224])
    predictor = spit.load("spit_tiny_16", device="cpu")
    model = predictor.model
    cases: dict[str, Callable[[], Any]] = {}
    for (height, width), block in images.items():
        cases[f"τ, 4 photos of {height}×{width}"] = lambda block=block: tokenizer(block).blocks[0].long()
    with torch.no_grad():
        cases |= {
            "τ of spit_tiny_16, 4 of 224×224": lambda: shipped(images[224, 224]).blocks[0].long(),
            "spit.superpixels, n=600, 321×481": lambda: spit.superpixels(photos[1], n=600).astype(np.int64),
            "φ, 4 of 224×224": lambda: extractor(images[224, 224], part).values,
            "model(images), 4 of 224×224": lambda: logits(model, images[224, 224]),
            "predictor(photo).top(5)": lambda: [chance for _, chance in predictor(photos[0]).top(5)[0]],
            "explain, relevance, 224×224": lambda: spit.explain(model, images[224, 224][:1]),
            "spit.segment, 224×224": lambda: spit.segment(model, images[224, 224][:1]).saliency[0],
        }
    return cases


def logits(model: Any, images: Any) -> Any:
    with torch.inference_mode():
        return model(images)


def digest(answer: Any) -> str:
    values = np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer)
    return hashlib.sha256(values.tobytes()).hexdigest()


if __name__ == "__main__":
    main()
