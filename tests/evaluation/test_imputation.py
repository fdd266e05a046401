import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.sparse.linalg import spsolve

from spit.evaluation.imputation import NOISE, impute


def by_hand(image, missing):
    """One equation a missing pixel, solved directly."""
    height, width = missing.shape
    number = -np.ones((height, width), int)
    number[missing] = np.arange(missing.sum())
    rows = sparse.lil_matrix((missing.sum(), missing.sum()))
    right = np.zeros(missing.sum())
    for y, x in zip(*np.nonzero(missing), strict=True):
        own = number[y, x]
        for dy, dx in ((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b):
            if 0 <= y + dy < height and 0 <= x + dx < width:
                weight = 1 / 6 if 0 in (dy, dx) else 1 / 12
                rows[own, own] += weight
                if missing[y + dy, x + dx]:
                    rows[own, number[y + dy, x + dx]] -= weight
                else:
                    right[own] += weight * image[y + dy, x + dx]
    answer = image.copy()
    answer[missing] = spsolve(rows.tocsr(), right)
    return answer


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_equals_a_direct_solution(share):
    random = np.random.default_rng(0)
    images, missing = random.random((2, 1, 12, 17)), random.random((2, 12, 17)) < share
    got = impute(torch.tensor(images).float(), torch.tensor(missing))
    for image, hole, found in zip(images[:, 0], missing, got[:, 0].numpy(), strict=True):
        np.testing.assert_allclose(found, by_hand(image, hole), atol=2e-4)


def test_a_hole_in_a_ramp_is_filled_by_the_ramp():
    ramp = torch.linspace(0, 1, 40).expand(1, 3, 40, 40)
    missing = torch.zeros(1, 40, 40, dtype=torch.bool)
    missing[:, 8:33, 5:31] = True
    torch.testing.assert_close(impute(ramp, missing), ramp, atol=2e-3, rtol=0)


def test_known_pixels_stay_and_noise_is_in_the_holes():
    image = torch.randint(0, 256, (1, 3, 20, 20), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    before, missing = image.clone(), torch.rand(1, 20, 20, generator=torch.Generator().manual_seed(1)) < 0.3
    plain = impute(image, missing)
    noisy = impute(image, missing, torch.ones(1, 3, 20, 20))
    assert torch.equal(image, before)
    torch.testing.assert_close(plain[:, :, ~missing[0]], image[:, :, ~missing[0]] / 255)
    added = (noisy - plain)[:, :, missing[0]]
    assert added.max() == pytest.approx(NOISE, abs=1e-5)
    assert torch.equal(noisy[:, :, ~missing[0]], plain[:, :, ~missing[0]])
    assert torch.equal(impute(image, torch.zeros_like(missing)), image / 255)
