"""Record the answers of the embedded models: ``python -m spit.doctor.record``."""

import json
from dataclasses import asdict
from pathlib import Path

from spit.doctor.answers import FILE, Answers, answer, sample_paths
from spit.predictor import load
from spit.registry import list_models


def record() -> Answers:
    """The answers of all embedded models on this machine's CPU."""
    predictors = {name: load(name, "cpu") for name in list_models(pretrained=True)}
    return Answers({name: predictor.digest for name, predictor in predictors.items()},
                   {name: {path.name: answer(predictor, path) for path in sample_paths()}
                    for name, predictor in predictors.items()})


if __name__ == "__main__":
    target = Path(__file__).with_name(FILE)
    target.write_text(json.dumps(asdict(record()), indent=1) + "\n")
    print(f"wrote {target}")
