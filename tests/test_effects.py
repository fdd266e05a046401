"""Importing and calling spit leaves the process as it was: it belongs to the user's program."""

import inspect
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
import safetensors.torch
import torch
import typer
from PIL import Image
from skimage import data

import spit
from interop.test_timm import vit
from process_state import changes, process_state
from seams.plain import PlainSeam, PlainViT
from spit import public
from spit.cli import main
from spit.cli.app import app
from spit.interruption import STOPPED

# Importing these packages has effects of its own.
OTHERS = ("captum.attr", "matplotlib.pyplot", "onnxscript", "pandas", "pyarrow", "ray.data", "rich.style",
          "scipy.ndimage", "scipy.stats", "skimage.segmentation", "torch._inductor.codecache", "uvicorn")
Call = Callable[[SimpleNamespace], Any]


class Features:
    width = 3

    def __call__(self, images: Any, partition: Any) -> Any: ...


class Backbone(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()

    def forward(self, tokens: Any, recorder: Any = None) -> Any: ...


@dataclass(frozen=True)
class Patches(spit.PatchTokenizer):
    pass


def refused(call: Callable[..., Any], *arguments: Any) -> None:
    with pytest.raises(spit.WeightsError):
        call(*arguments)


CALLS: dict[str, Call] = {
    "FeatureExtractor": lambda it: spit.FeatureExtractor()(it.batch, spit.PatchTokenizer(16)(it.batch)),
    "PatchTokenizer": lambda it: spit.PatchTokenizer(16)(it.batch),
    "VoronoiTokenizer": lambda it: spit.VoronoiTokenizer(16)(it.batch),
    "SuperpixelTokenizer": lambda it: spit.SuperpixelTokenizer(refine=1)(it.batch),
    "Hierarchy": lambda it: spit.SuperpixelTokenizer().hierarchy(it.image).at(9),
    "Partition": lambda it: spit.Partition.from_labels(torch.zeros(1, 4, 4, dtype=torch.int64)).boundaries(),
    "SpitModel": lambda it: it.model(it.batch, record=("attention", "features")),
    "Predictor": lambda it: it.predictor([it.photo, it.photo]).top(5),
    "Prediction": lambda it: (it.predictor(it.pixels, crop=False).segment(), it.predictor(it.photo).explain()),
    "correspond": lambda it: spit.correspond(it.model, it.image, it.batch),
    "create_model": lambda it: spit.create_model("spit_tiny_16", pretrained=True),  # new weights draw as torch.nn's do
    "create_tokenizer": lambda it: spit.create_tokenizer("patch"),
    "explain": lambda it: [spit.explain(it.model, it.batch[:1], method=method)
                           for method in ("relevance", "flow", "rollout", "prototype", "lime", "token_rise")],
    "from_published": lambda it: refused(spit.from_published, it.vit),
    "from_timm": lambda it: spit.from_timm(it.vit),
    "hierarchy": lambda it: spit.hierarchy(it.pixels).at(9),
    "list_models": lambda it: spit.list_models("*", pretrained=True),
    "load": lambda it: spit.load("spit_tiny_16", device="cpu")(it.photo).top(1),
    "load_image": lambda it: spit.load_image(it.photo),
    "load_model": lambda it: spit.load_model("spit_tiny_16"),
    "pool": lambda it: spit.pool(it.batch.float(), spit.PatchTokenizer(16)(it.batch), "both"),
    "register_backbone": lambda it: spit.register_backbone("effects_backbone", Backbone),
    "register_features": lambda it: spit.register_features("effects_features", Features),
    "register_tokenizer": lambda it: spit.register_tokenizer("effects_tokenizer", Patches),
    "register_seam": lambda it: spit.register_seam(PlainViT, PlainSeam),
    "save_model": lambda it: spit.save_model(it.model, "saved"),
    "segment": lambda it: spit.segment(it.model, it.batch),
    "superpixels": lambda it: spit.superpixels(it.pixels, n=20),
    "superpixels_tiled": lambda it: (spit.superpixels_tiled(it.pixels, n=20),
                                     spit.superpixels_tiled(it.pixels, n=20, out="tiled.npy")),
    "superpixels_video": lambda it: list(spit.superpixels_video([it.pixels, it.pixels[::-1]], n=20)),
    "regions": lambda it: spit.regions(it.labels, it.pixels).to_pandas(),
    "adjacency": lambda it: spit.adjacency(it.labels, it.pixels).to_rag(),
    "polygons": lambda it: spit.polygons(it.labels, simplify=1).to_geojson(),
    "draw": lambda it: spit.draw(it.pixels, it.labels),
    "wrap": lambda it: (spit.register_seam(PlainViT, PlainSeam), spit.wrap(it.backbone)(it.batch)),
}
VALUES = {"Adjacency", "Correspondence", "Guess", "ModelConfig", "Output", "Polygons", "Regions", "Segmentation",
          "Tokenizer", "Tokens"}  # hold answers

TINY = "--set data.size=32 --set data.workers=0 --set optimization.batch=4 --set optimization.epochs=1"
COMMANDS = {
    "tokenize": "photos/1/0.png -o tokens --polygons --table",
    "classify": "photos/1/0.png photos/2/1.png",
    "explain": "photos/1/0.png -o explained --method lime --samples 40",
    "segment": "photos/1 -o masks --workers 2",
    "correspond": "photos/1/0.png photos/2/1.png -o colours",
    "train": f"smoke --set data.train=photos -o trained {TINY} --set data.workers=1",
    "retrofit": f"--parent vit.safetensors --images photos --set data.side=36 -o student {TINY}",
    "demo": "-o demo",
    "prototypes": "--data photos --size 64 -o fitted",
    "batch": "photos --output rows --workers 2 --size 64",
    "bench": "--size 32 --batch 1 --rounds 1",
    "train-head": "--data photos --size 64 --steps 2 --generations 1 -o head",
    "convert": "vit.safetensors -o converted",
    "export": "spit_tiny_16 --format torch -o tiny.pt2",
    "serve": "",
    "doctor": "",
    "evaluate": "swap --data photos --size 64 -o measured",
}


@pytest.fixture(scope="module", autouse=True)
def import_others() -> None:
    for name in OTHERS:
        pytest.importorskip(name)


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Inputs for every call, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    pixels = data.astronaut()[100:196, 180:276]
    for index in range(6):
        path = tmp_path / "photos" / "12"[index % 2] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[index:, index:]).save(path)
    tensors = vit(width=64, patch=16, grid=2, classes=3)
    safetensors.torch.save_file(tensors, tmp_path / "vit.safetensors")
    image = torch.from_numpy(pixels.copy()).movedim(-1, 0)
    return SimpleNamespace(photo=path, pixels=pixels, image=image, batch=torch.stack([image, image.flip(2)]),
                           model=spit.load_model("spit_tiny_16"), predictor=spit.load("spit_tiny_16", device="cpu"),
                           vit=tensors, labels=np.arange(96 * 96).reshape(96, 96) // 999, backbone=PlainViT().eval())


def settle(before: dict[str, Any]) -> list[str]:
    """What has changed; threads and processes that are ending get five seconds to end."""
    for _ in range(50):
        found = changes(before, process_state())
        if not set(found) & {"threads", "child processes"}:
            break
        time.sleep(0.1)
    return found


def test_every_public_name_is_called() -> None:
    errors = {name for name in public.__all__ if inspect.isclass(value := getattr(spit, name))
              and issubclass(value, Exception)}
    assert set(public.__all__) == CALLS.keys() | VALUES | errors


def test_every_verb_is_run() -> None:
    assert COMMANDS.keys() == typer.main.get_command(app).commands.keys()


def test_importing_changes_nothing() -> None:
    done = subprocess.run([sys.executable, Path(__file__).parent / "process_state.py"], capture_output=True, text=True,
                          check=True, timeout=240)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", CALLS)
def test_calling_changes_nothing(it: SimpleNamespace, name: str) -> None:
    before = process_state()
    CALLS[name](it)
    assert settle(before) == []


def press_ctrl_c(url: str) -> None:
    """Once a service answers, interrupt this process."""
    for _ in range(600):
        with suppress(OSError), urlopen(url):
            break
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)


RAYS_OWN = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("verb", [pytest.param(verb, marks=[RAYS_OWN] * (verb == "batch")) for verb in COMMANDS])
def test_a_verb_changes_nothing(it: SimpleNamespace, verb: str) -> None:
    """In a process that goes on, as a notebook's does."""
    before = process_state()
    words = COMMANDS[verb].split()
    if verb == "serve":
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        words += ["--port", str(port)]
        threading.Thread(target=press_ctrl_c, args=(f"http://127.0.0.1:{port}/health",)).start()
    assert main([verb, *words]) in (0, STOPPED)
    assert settle(before) == []
