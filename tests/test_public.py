"""The public surface of DESIGN.md, and what importing it may import (contract 6)."""

import inspect
import subprocess
import sys

import pytest
import torch

import spit

EXTRAS = ("typer", "rich", "skimage", "cv2", "scipy", "matplotlib", "timm", "torchvision", "huggingface_hub",
          "kornia", "captum", "sklearn", "webdataset", "fastapi", "uvicorn", "ray", "accelerate")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_works_without_any_extra() -> None:
    """They are barred, as if not installed; also for numba, which looks for scipy by itself."""
    assert run(
        "import sys\n"
        f"for name in {EXTRAS!r}: sys.modules[name] = None\n"
        "import torch, spit\n"
        "print(spit.SuperpixelTokenizer(levels=1)(torch.zeros(3, 8, 8)).counts.tolist())\n"
    ) == "[1]"


def test_import_loads_no_extra_and_changes_no_setting_of_torch() -> None:
    assert run(
        "import sys, torch, numpy, numba, PIL.Image, safetensors.torch\n"
        "before = set(sys.modules)\n"
        "settings = torch.get_rng_state().tolist(), torch.get_num_threads(), torch.get_default_dtype()\n"
        "import spit; spit.load\n"
        "assert settings == (torch.get_rng_state().tolist(), torch.get_num_threads(), torch.get_default_dtype())\n"
        f"print([name for name in {EXTRAS!r} if name in set(sys.modules) - before])\n"
    ) == "[]"


def test_torch_is_imported_when_a_name_is_asked_for() -> None:
    assert run(
        "import sys, numpy, spit, spit.runtime\n"
        "image = numpy.zeros((20, 20, 3))\n"
        "labels = spit.superpixels(image, n=4, min_size=9, to='lab')\n"
        "bands = numpy.arange(7 * 5 * 6 * 4).reshape(7, 5, 6, 4)\n"
        "spit.superpixels(bands, channel_axis=0, nodata=3, spacing=(2, 1, 1), weights=range(7))\n"
        "spit.hierarchy(image).keep(labels == 2).cut(9)\n"
        "list(spit.superpixels_video([image, image], n=4))\n"
        "spit.regions(labels, image).to_csv(), spit.adjacency(labels, image), spit.draw(image, labels)\n"
        "spit.polygons(labels, 1).to_coco(), spit.Regions, spit.Adjacency, spit.Polygons\n"
        "spit.superpixels_tiled(bands, channel_axis=0, nodata=3, tile=16)\n"
        "print('torch' in sys.modules, spit.__version__ != '')\n"
        "from spit import *\n"
        "print('torch' in sys.modules, load is spit.load, spit.kernels.__name__, 'load' in dir(spit))\n"
        "print(hasattr(spit, 'nothing'))\n"
    ) == "False True\nTrue True spit.kernels True\nFalse"


@pytest.mark.parametrize("name", spit.__all__)
def test_every_public_name_exists_and_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(spit, name))


@pytest.mark.parametrize("name", [
    "SuperpixelTokenizer", "PatchTokenizer", "VoronoiTokenizer", "Partition", "Hierarchy", "Tokens",
    "load_image", "create_model", "list_models", "from_timm", "pool",
])
def test_the_names_of_the_design_are_public(name: str) -> None:
    assert name in spit.__all__


def test_all_is_sorted_and_has_no_double() -> None:
    assert sorted(spit.__all__) == list(spit.__all__)
    assert len(set(spit.__all__)) == len(spit.__all__)


def test_superpixel_options_of_the_design() -> None:
    parameters = inspect.signature(spit.SuperpixelTokenizer).parameters
    design = {"levels": 4, "compactness": 0.0, "merge_threshold": 0.0, "max_tokens": None, "refine": 0}
    assert {name: parameters[name].default for name in design} == design


def test_the_design_s_example_runs() -> None:
    images = torch.rand(2, 3, 32, 48, generator=torch.Generator().manual_seed(0))
    tok = spit.SuperpixelTokenizer(levels=4, compactness=0.0, merge_threshold=0.0, max_tokens=None, refine=0)
    part = tok(images)
    assert part.labels.shape == (2, 32, 48)
    assert not part.labels.is_floating_point()
    assert part.counts.shape == (2,)
    assert part.offsets.shape == (3,)
    assert part.paint(torch.rand(int(part.offsets[-1]))).shape == (2, 32, 48)
    assert part.boundaries().shape == (2, 32, 48)
    assert part.sizes().shape == (int(part.offsets[-1]),)
    assert part.boxes().shape == (int(part.offsets[-1]), 4)
    hier = tok.hierarchy(images)
    assert len(hier) == 5
    assert torch.equal(hier[4].labels, part.labels)
    assert len(hier.parents[0]) == 2 * 32 * 48
    assert spit.PatchTokenizer(16)(images).counts.tolist() == [6, 6]
    assert spit.VoronoiTokenizer(256, seed=0)(images).counts.tolist() == [256, 256]


def test_models_of_the_design() -> None:
    assert set(spit.list_models()) >= {f"{kind}_{size}_16" for kind in ("vit", "rvit", "spit")
                                       for size in ("tiny", "small", "base", "large")}
    signature = inspect.signature(spit.create_model)
    assert "pretrained" in signature.parameters
    model = spit.create_model("spit_tiny_16", num_classes=7, gradients=True)
    images = [torch.zeros(3, 20, 30), torch.rand(3, 33, 17, generator=torch.Generator().manual_seed(0))]
    with torch.no_grad():
        assert model(images).shape == (2, 7)
        out = model(images, record=("attention", "features"))
        assert out.logits.shape == (2, 7)
        for name in ("class_token", "tokens", "partition", "attention"):
            assert getattr(out, name) is not None
        for tokenizer in ("patch", "voronoi", "superpixel", spit.PatchTokenizer(8)):
            assert model.with_tokenizer(tokenizer)(images).shape == (2, 7)
