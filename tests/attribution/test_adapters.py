"""Other packages on our models.

captum comes with spit-vit[explain]. pytorch-grad-cam and Quantus ask for another build of OpenCV than ours, and for
torchvision, which other packages then fail to load, so they are in no extra: ``make test`` installs tests/adapters.txt
in a folder of its own and runs this file with it. The tests of packages that are missing are skipped.
"""

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

import spit
from spit.attribution import explain_func

PAGE = Path(__file__).parents[2] / "docs" / "attribution.md"


@pytest.fixture(params=["patch", "superpixel"])
def model(small, request):
    return small(request.param)


@pytest.fixture
def pixels(images):
    return images.float() / 255


def test_captum_ablates_whole_tokens(model, pixels):
    captum = pytest.importorskip("captum.attr")
    masks = model.tokenizer(pixels).labels[:, None].long()
    image, mask = pixels[:1], masks[:1]
    with torch.no_grad():
        found = captum.FeatureAblation(model).attribute(image, target=2, feature_mask=mask, perturbations_per_eval=4)
        token = int(mask.max())
        painted = torch.where(mask == token, torch.zeros_like(image), image)
        expected = model(image)[0, 2] - model(painted)[0, 2]
    assert found.shape == image.shape
    torch.testing.assert_close(found[0, 0][mask[0, 0] == token], expected.expand(int((mask == token).sum())),
                               atol=1e-5, rtol=1e-4)
    with torch.no_grad():
        values = captum.ShapleyValueSampling(model).attribute(image, target=2, feature_mask=mask, n_samples=2)
    totals = [values[0, 0][mask[0, 0] == token].mean() for token in mask.unique()]
    with torch.no_grad():
        gained = model(image)[0, 2] - model(torch.zeros_like(image))[0, 2]
    torch.testing.assert_close(torch.stack(totals).sum(), gained, atol=1e-4, rtol=1e-3)


def as_maps(partition):
    """The function of docs/attribution.md as it is written."""
    [source] = re.findall(r"^(def as_maps.*?)\n\n", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    exec(source, names := {"torch": torch, "partition": partition})
    return names["as_maps"]


def test_tokens_are_painted_on_their_pixels(model, pixels):
    out = model(pixels, record={"features": (-1,)})
    rows = out.features[1]
    maps = as_maps(out.partition)(rows.values)
    assert maps.shape == (3, 24, 40, 40)
    for image, own, labels in zip(maps, rows, out.partition.labels, strict=True):
        torch.testing.assert_close(image[:, 7, 31], own[1 + int(labels[7, 31])])


@pytest.fixture(scope="module")
def grad_cam():
    """The package. Beside the CPU build of torch, torchvision's Python half needs two of its operators declared."""
    if find_spec("pytorch_grad_cam") is None:
        pytest.skip("pytorch-grad-cam is not installed")
    library = None
    if "cpu" in torch.__version__:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    yield import_module("pytorch_grad_cam")
    del library


@pytest.mark.filterwarnings("ignore")
def test_grad_cam(model, pixels, grad_cam):
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    transform, layer = as_maps(model.tokenizer(pixels)), model.backbone.blocks[-1].norm1
    with grad_cam.GradCAM(model=model, target_layers=[layer], reshape_transform=transform) as cam:
        found = cam(input_tensor=pixels, targets=[ClassifierOutputTarget(2)] * 3)
    assert found.shape == (3, 40, 40)
    assert np.isfinite(found).all()
    labels = model.tokenize(pixels)[0].labels
    for image, own in zip(found, labels, strict=True):
        assert image.max() > image.min()
        for token in range(int(own.max()) + 1):
            assert np.ptp(image[own.numpy() == token]) < 1e-6  # a value a token, not interpolated


@pytest.mark.filterwarnings("ignore")
def test_quantus(model, pixels):
    quantus = pytest.importorskip("quantus", exc_type=ImportError)
    inputs, labels = pixels.numpy(), np.array([0, 1, 2])
    metric = quantus.PixelFlipping(features_in_step=400, perturb_baseline="mean", disable_warnings=True)
    scores = metric(model=model, x_batch=inputs, y_batch=labels, a_batch=None, device="cpu",
                    explain_func=explain_func, explain_func_kwargs={"method": "flow"})
    assert len(scores) == 3
    assert np.isfinite(np.array(scores, dtype=float)).all()


@pytest.mark.filterwarnings("ignore")
def test_the_measures_of_the_guide(model, pixels):
    """The snippet of docs/attribution.md as it is written."""
    pytest.importorskip("quantus", exc_type=ImportError)
    [snippet] = re.findall(r"```py\n([^`]*import quantus.*?)```", PAGE.read_text(), re.DOTALL)
    with torch.no_grad():
        classes = model(pixels).argmax(1)
    masks = np.zeros((3, 1, 40, 40), dtype=bool)
    masks[:, :, 8:32, 8:32] = True
    names = {"model": model, "x": pixels.numpy(), "y": classes.numpy(), "masks": masks}
    exec(compile(snippet, "attribution.md", "exec"), names)
    assert list(names["road"]) == [60, 120, 180, 240]
    assert all(0 <= share <= 1 for share in names["road"].values())
    assert len(names["randomised"]) == len(names["faithful"]) == 3
    assert max(map(abs, names["randomised"])) < 1
    relevance = spit.explain(model, pixels, "relevance", classes).numpy()
    brightest = relevance == relevance.max((1, 2), keepdims=True)
    assert list(names["pointing"]) == (brightest & masks[:, 0]).any((1, 2)).tolist()
    expected = (relevance * masks[:, 0]).sum((1, 2)) / relevance.sum((1, 2))
    np.testing.assert_allclose(names["inside"], expected, rtol=1e-4)


def test_maps_for_quantus(model, pixels):
    got = explain_func(model, pixels.numpy(), np.array([0, 1, 2]), device="cpu")
    expected = spit.explain(model, pixels, "relevance", [0, 1, 2])
    np.testing.assert_allclose(got[:, 0], expected.numpy(), rtol=1e-5)
    beyond = explain_func(model, pixels.numpy() * 3 - 1, np.array([0, 1, 2]))
    np.testing.assert_allclose(beyond, explain_func(model, (pixels * 3 - 1).clamp(0, 1), [0, 1, 2]), rtol=1e-5)
