"""The tokenizer and features of the authors' release beside its values, ../shared/golden, and a small copy of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

import spit
from spit.interop.published.features import PublishedFeatures
from spit.model import SpitModel
from spit.partition import Partition

SMALL = Path(__file__).parent / "golden_small.npz"
NAMES = ("100007", "100039", "100099", "10081")
MODELS = ("spit_grad", "spit_nograd", "vit_grad")
THRESHOLDS = (0.05, 0.1, 0.15, 0.2)


@dataclass
class Golden:
    """The values of one model of the release, and the same model loaded by spit."""

    values: dict[str, NDArray[np.generic]]
    model: SpitModel
    images: Tensor

    def labels(self, index: int) -> NDArray[np.generic]:
        return self.values[f"labels/{index}"]


@pytest.fixture(scope="module", params=MODELS)
def golden(request: pytest.FixtureRequest, shared_folder: Callable[[str], Path]) -> Golden:
    values = dict(np.load(shared_folder("golden") / f"{request.param}.npz"))
    weights = {name.removeprefix("weights/"): torch.from_numpy(value) for name, value in values.items()
               if name.startswith("weights/")}
    model = spit.from_published(weights, tokenizer="patch" if request.param == "vit_grad" else None, heads=3,
                                sigma=0.05 if "_grad" in request.param else None)
    images = []
    for name in NAMES:
        image = spit.load_image(next(shared_folder("data/bsds500").rglob(f"{name}.jpg")))
        y, x = (image.shape[1] - 224) // 2, (image.shape[2] - 224) // 2
        images.append(image[:, y : y + 224, x : x + 224])
    return Golden(values, model, torch.stack(images))


def matching(a: NDArray[np.generic], b: NDArray[np.generic]) -> float:
    """Share of pixels in matching regions, each region matched with one at most."""
    overlap = np.zeros((a.max() + 1, b.max() + 1), np.int64)
    np.add.at(overlap, (a.ravel(), b.ravel()), 1)
    return float(overlap[linear_sum_assignment(-overlap)].sum() / a.size)


@pytest.mark.parametrize("index", range(4))
def test_tokens_and_logits_given_the_labels(golden: Golden, index: int) -> None:
    image, part = golden.images[index], Partition.from_labels(golden.labels(index))
    tokens = golden.model.extractor(image, part).values
    assert np.abs(tokens.numpy() - golden.values[f"tokens/{index}"]).max() < 2e-3
    with torch.inference_mode():
        logits = golden.model.with_tokenizer(lambda _: part)(image)
    assert np.abs(logits[0].numpy() - golden.values[f"logits/{index}"]).max() < 1e-3


def test_our_own_labels(golden: Golden) -> None:
    """Alone and in a batch alike. What differs are decisions within rounding of one of the 65,536 steps."""
    together = golden.model.tokenizer(golden.images)
    for index in range(4):
        ours, theirs = together.labels[index].numpy(), golden.labels(index)
        assert abs(ours.max() - theirs.max()) <= 0.02 * (theirs.max() + 1)
        assert matching(theirs, ours) >= (1 if golden.model.config.tokenizer == "patch" else 0.97)
        assert np.array_equal(golden.model.tokenizer(golden.images[index]).labels[0].numpy(), ours)


def test_our_own_logits(golden: Golden) -> None:
    with torch.inference_mode():
        logits = golden.model(golden.images).numpy()
    expected = np.stack([golden.values[f"logits/{index}"] for index in range(4)])
    assert np.abs(logits - expected).max() < 0.01


@pytest.mark.parametrize("golden", ["spit_grad", "spit_nograd"], indirect=True)
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_merges(golden: Golden, threshold: float) -> None:
    theirs = golden.values[f"labels_th{threshold}/0"]
    merged = golden.model.with_tokenizer("published", merge_threshold=threshold).tokenizer(golden.images[0])
    ours = merged.labels[0].numpy()
    assert abs(ours.max() - theirs.max()) <= max(0.02 * theirs.max(), 1)
    assert matching(theirs, ours) >= 0.97


def test_a_small_copy_of_position_histograms() -> None:
    """What needs no photograph: labels of the release, and the fourth channel of its tokens with gradients."""
    small = np.load(SMALL)
    part = Partition.from_labels(small["labels"])
    extractor = PublishedFeatures(position_sigma=0.05, gradient_sigma=0.05)
    values = extractor(torch.zeros(3, 224, 224, dtype=torch.uint8), part).values
    assert np.abs(values[:, 3::5].numpy()[small["rows"]] - small["positions"]).max() < 2e-3
