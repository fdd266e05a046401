import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

from spit.config import ModelConfig
from spit.errors import MissingExtra, WeightsError
from spit.files import TEMPORARY
from spit.model import SpitModel
from spit.partition import Partition
from spit.parts import BACKBONES, FEATURES, TOKENIZERS, register_backbone, register_features, register_tokenizer
from spit.registry import load_model as load
from spit.tokenizers import Tokenizer
from spit.tokens import Tokens
from spit.weights import CONFIG, read, save

COMMIT = "a" * 40


def tiny(seed=0, **changes):
    torch.manual_seed(seed)
    config = ModelConfig(tokenizer="patch", tokenizer_options={"size": 8}, resolution=2, position_bins=2,
                         gradients=False, width=8, depth=1, heads=2, num_classes=3)
    return SpitModel(config.replace(**changes)).eval()


def weights_of(folder):
    return sorted(folder.glob("*.safetensors"))


def same(first, second):
    return first.config == second.config and all(
        torch.equal(tensor, second.state_dict()[name]) for name, tensor in first.state_dict().items())


def test_round_trip_is_equal_to_the_last_bit(tmp_path):
    model, images = tiny(), torch.randint(0, 256, (2, 3, 16, 20), dtype=torch.uint8)
    loaded = load(save(model.train(), tmp_path / "new" / "folder"))
    assert same(model, loaded)
    assert not loaded.training
    assert torch.equal(loaded(images), model.eval()(images))


def test_class_names_and_size_travel_with_the_weights(tmp_path):
    save(tiny(class_names=("ant", "bee", "cat"), train_size=32, eval_size=40), tmp_path)
    for classes, names in ((None, ("ant", "bee", "cat")), (3, ("ant", "bee", "cat")), (2, ()), (0, ())):
        config = load(tmp_path, num_classes=classes).config
        assert (config.class_names, config.train_size, config.eval_size) == (names, 32, 40)


def test_loading_leaves_the_random_state(tmp_path):
    save(tiny(), tmp_path)
    state = torch.get_rng_state()
    load(tmp_path)
    assert torch.equal(torch.get_rng_state(), state)


def test_half_on_disk_is_float32_in_memory(tmp_path):
    model = tiny()
    save(model, tmp_path / "whole")
    save(model, tmp_path / "half", dtype=torch.float16)
    half = load(tmp_path / "half")
    assert all(parameter.dtype == torch.float32 for parameter in half.parameters())
    assert torch.equal(half.head.linear.weight, model.head.linear.weight.half().float())
    assert load(tmp_path / "half", dtype=torch.bfloat16).head.linear.weight.dtype == torch.bfloat16
    sizes = [weights_of(tmp_path / name)[0].stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.8 * sizes[1]


def test_saving_again_replaces_and_keeps_other_files(tmp_path):
    save(tiny(0), tmp_path)
    (tmp_path / "model-card.safetensors").write_text("not ours")
    save(tiny(1), tmp_path)
    assert same(load(tmp_path), tiny(1))
    assert len(weights_of(tmp_path)) == 2
    assert len(list(tmp_path.iterdir())) == 3


def test_same_model_same_bytes(tmp_path):
    first, second = (weights_of(save(tiny(), tmp_path / name))[0] for name in ("a", "b"))
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(("function", "step", "survivor"), [
    ("replace", 0, 0), ("replace", 1, 0),  # weights, config
    ("fsync", 0, 0), ("fsync", 1, 0), ("fsync", 2, 0), ("fsync", 3, 1),  # weights, folder, config, folder
])
def test_a_crash_at_any_step_leaves_a_whole_model(tmp_path, monkeypatch, function, step, survivor):
    save(tiny(0), tmp_path)
    real, calls = getattr(os, function), []

    def crash(*arguments):
        calls.append(arguments)
        if len(calls) == step + 1:
            raise OSError("power cut")
        return real(*arguments)

    monkeypatch.setattr(os, function, crash)
    with pytest.raises(OSError, match="power cut"):
        save(tiny(1), tmp_path)
    assert len(calls) == step + 1
    monkeypatch.undo()
    assert same(load(tmp_path), tiny(survivor))
    assert not list(tmp_path.glob(f"{TEMPORARY}*"))
    save(tiny(1), tmp_path)
    assert same(load(tmp_path), tiny(1))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("place", [0, 9, -1])
def test_a_flipped_byte_is_found(tmp_path, place):
    save(tiny(), tmp_path)
    path = weights_of(tmp_path)[0]
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(WeightsError, match="is damaged: its SHA-256"):
        load(tmp_path)


def rewrite(folder, change):
    config = json.loads((folder / CONFIG).read_text())
    change(config)
    (folder / CONFIG).write_text(json.dumps(config))


@pytest.mark.parametrize(("change", "message"), [
    (lambda config: config.pop("weights"), "is not one that spit writes: the key 'weights' is missing$"),
    (lambda config: config.pop("spit"), "is not one that spit writes: the key 'spit' is missing$"),
    (lambda config: config.update(weights="model.safetensors"), "expected weights as an object, got str$"),
    (lambda config: config["weights"].update(file=3), "weights file 3$"),
    (lambda config: config["weights"].update(file="../model.safetensors"), "weights file"),
    (lambda config: config["weights"].update(file="model-0123456789abcdef.safetensors"), "which is not there"),
    (lambda config: config.update(spit=99), "format 99"),
    (lambda config: config["model"].update(widht=8), "did you mean 'width'"),
    (lambda config: config["model"].update(depth="one"), "expected depth to be a whole number"),
    (lambda config: config["model"].update(tokenizer="hexagon"), "'hexagon' is not registered"),
    (lambda config: config["model"].update(class_names=["ant"]), "expected class_names for 3 classes, got 1"),
    (lambda config: config["model"].update(class_names=[1, 2, 3]), "expected class_names to be tuple of str"),
    (lambda config: config.update(model=[]), "is not one that spit writes: expected model as an object, got list$"),
    (lambda config: config["model"].update(num_classes=4), r"head.linear.weight expected \(4, 8\), got \(3, 8\)"),
    (lambda config: config["model"].update(depth=2), r"blocks.1.norm1.weight is missing.*\(and \d+ more\)"),
    (lambda config: config["model"].update(layer_scale=None), "scale1.factor is unexpected"),
])
def test_a_config_that_does_not_fit(tmp_path, change, message):
    rewrite(save(tiny(), tmp_path), change)
    with pytest.raises(WeightsError, match=message) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "\x00", "[" * 100_000])
def test_a_config_that_is_none(tmp_path, text):
    save(tiny(), tmp_path)
    (tmp_path / CONFIG).write_text(text)
    with pytest.raises(WeightsError, match="not one that spit writes"):
        load(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(WeightsError, match=r"no config.json there.*save_model wrote$"):
        load(tmp_path)
    save(tiny(), tmp_path / "run" / "model")
    with pytest.raises(WeightsError, match=r"no config.json there.*did you mean .*run.model\?"):
        load(tmp_path / "run")
    with pytest.raises(WeightsError, match=r"no folder .*hub id"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize("source", ["./nope", "../nope", "/abs/nope", "owner/name/", "./owner/name", "~/nope",
                                    "here/nope", "here/nope@main", ".hidden/nope", Path("owner/name"), "-o/name"])
def test_a_path_is_never_taken_for_a_hub_id(tmp_path, monkeypatch, source):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)  # MissingExtra would tell of an attempt
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    with pytest.raises(WeightsError, match=f"^no folder {source}; ") as caught:
        load(source)
    assert "\n" not in str(caught.value)


def test_the_weights_file_of_a_saved_model_leads_to_its_folder(tmp_path):
    save(tiny(), tmp_path)
    with pytest.raises(WeightsError, match=r"got the file .*; give its folder if spit saved it"):
        load(weights_of(tmp_path)[0])


def test_a_tokenizer_of_ones_own_cannot_be_saved(tmp_path):
    model = tiny()
    with pytest.raises(WeightsError, match="among patch, voronoi, superpixel"):
        save(model.with_tokenizer(lambda images: model.tokenizer(images)), tmp_path)
    assert not list(tmp_path.iterdir())


@dataclass(frozen=True)
class Halves(Tokenizer):
    split: object = None

    def partition(self, block):
        side = torch.arange(block.shape[3]) * 2 // block.shape[3]
        return Partition.from_labels(side.expand(len(block), *block.shape[2:]))


class Means:
    width = 3

    def __call__(self, images, partition):
        return Tokens(torch.ones(int(partition.offsets[-1]), 3), partition.offsets)


class Scaled(torch.nn.Module):
    def __init__(self, width, factor=2.0):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.factor = factor

    def forward(self, tokens, recorder=None):
        return tokens.replace(self.factor * self.linear(tokens.values))


@pytest.fixture
def own_parts(restored_parts):
    """A tokenizer, features and a backbone, registered for one test."""
    register_tokenizer("halves", Halves)
    register_features("means", Means)
    register_backbone("scaled", Scaled)
    return {"tokenizer": "halves", "tokenizer_options": {}, "extractor": "means", "backbone": "scaled",
            "backbone_options": {"factor": 3.0}}


@pytest.mark.parametrize(("parts", "message"), [
    (TOKENIZERS, "its tokenizer 'halves' is not registered; import the module that registers it"),
    (FEATURES, "its features 'means' is not registered; .*--plugin MODULE"),
    (BACKBONES, "its backbone 'scaled' is not registered; import"),
], ids=["tokenizer", "features", "backbone"])
def test_a_part_that_is_not_registered_is_refused_with_what_to_do(tmp_path, own_parts, parts, message):
    save(tiny(**own_parts), tmp_path)
    known = [name for name in parts if name in ("halves", "means", "scaled")]
    for name in known:
        del parts._classes[name]
    with pytest.raises(WeightsError, match=message) as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


def test_options_that_json_cannot_hold_are_refused_before_anything_is_written(tmp_path, own_parts):
    model = tiny(**own_parts).with_tokenizer(Halves(split={1, 2}))
    with pytest.raises(WeightsError, match=r"that JSON can hold: .*set"):
        save(model, tmp_path)
    assert not list(tmp_path.iterdir())


def refusal(folder):
    with pytest.raises(WeightsError) as caught:
        save(tiny(), folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_places_where_no_model_can_be_saved(tmp_path):
    path = tmp_path / "taken"
    path.write_text("mine")
    for folder in (path, path / "below"):
        assert f"{str(folder)!r} cannot be made" in refusal(folder)
    for suffix in (".safetensors", ".pth", ".PT", ".bin"):
        assert f"makes a folder: {tmp_path / 'model'}" in refusal(tmp_path / f"model{suffix}")
    for name in ("a" * 300, "a\0b", "/proc/nowhere/model"):
        assert "cannot be made" in refusal(tmp_path / name)
    for model in (None, torch.nn.Linear(2, 2), "spit_tiny_16"):
        with pytest.raises(TypeError, match="a model of spit"):
            save(model, tmp_path / "model")
    assert [each.name for each in tmp_path.iterdir()] == ["taken"]
    assert path.read_text() == "mine"


@pytest.mark.parametrize("config", [None, "{}", "[]", "not json", '{"model_type": "vit"}'])
def test_a_folder_of_other_things_is_left_alone(tmp_path, config):
    (tmp_path / "notes.txt").write_text("mine")
    if config is not None:
        (tmp_path / CONFIG).write_text(config)
    before = sorted(tmp_path.iterdir())
    message = refusal(tmp_path)
    assert ("notes.txt" if config is None else CONFIG) in message
    assert message.endswith("choose a new folder")
    assert sorted(tmp_path.iterdir()) == before


def test_what_a_cut_off_save_leaves_and_hidden_files_do_not_stand_in_the_way(tmp_path):
    (tmp_path / ".gitattributes").write_text("")
    (tmp_path / f"{TEMPORARY}0").write_bytes(b"half")
    os.utime(tmp_path / f"{TEMPORARY}0", times=(0, 0))
    (tmp_path / "model-0123456789abcdef.safetensors").write_bytes(b"whole")
    assert same(load(save(tiny(), tmp_path)), tiny())
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".gitattributes", CONFIG, weights_of(tmp_path)[0].name]


def test_another_number_of_classes_gets_a_fresh_head(tmp_path):
    model = tiny()
    save(model, tmp_path)
    torch.manual_seed(1)
    other = load(tmp_path, num_classes=5)
    assert (other.config.num_classes, other.head.linear.weight.shape) == (5, (5, 8))
    assert other.head.linear.weight.any()
    assert torch.equal(other.embedder.projection.weight, model.embedder.projection.weight)
    assert load(tmp_path, num_classes=0).config.num_classes == 0
    assert same(load(tmp_path, num_classes=3), model)
    with pytest.raises(ValueError, match="num_classes of at least 0, got -1"):
        load(tmp_path, num_classes=-1)
    rewrite(tmp_path, lambda config: config["model"].update(tokenizer="hexagon"))
    with pytest.raises(WeightsError, match="hexagon"):
        load(tmp_path, num_classes=5)


def test_another_resolution_resizes_the_patches(tmp_path):
    """Patches of as many pixels as the weights were learnt for have the same tokens."""
    model, images = tiny(resolution=4, tokenizer_options={"size": 4}), torch.rand(2, 3, 16, 16)
    checkpoint = read(save(model, tmp_path))
    finer = checkpoint.build(model.config.replace(resolution=8, num_classes=5)).eval()
    assert finer.embedder.projection.weight.shape == (8, 3 * 64 + 4)
    torch.testing.assert_close(finer.embed(images), model.embed(images), rtol=1e-3, atol=1e-4)
    assert same(checkpoint.build(model.config), model)


@pytest.mark.parametrize("extractor", ["means", "published"])
def test_a_resolution_that_the_weights_cannot_have(tmp_path, restored_parts, extractor):
    register_features("means", Means)
    model = tiny(tokenizer="superpixel", tokenizer_options={}, position_bins=2, gradient_bins=2, extractor=extractor)
    finer = {"resolution": 4, "position_bins": 4, "gradient_bins": 4}
    with pytest.raises(WeightsError, match=r"expected resolution=2, as its .*, got 4; with extractor='"):
        read(save(model, tmp_path)).build(model.config.replace(**finer))


def test_missing_extra_names_itself(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"needs huggingface_hub; install the extra: pip install 'spit-vit\[hub\]'"):
        load("owner/name")


@contextmanager
def hub(folder, revision="main"):
    """A loopback server that answers as the Hugging Face hub does for one repository, owner/name."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            parts = self.path.strip("/").split("/")
            found = parts[:3] == ["owner", "name", "resolve"] and parts[3] in (revision, COMMIT) and folder / parts[4]
            if not found or not found.is_file():
                self.send_response(404)
                self.send_header("X-Error-Code", "EntryNotFound" if found else "RepoNotFound")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            data = found.read_bytes()
            self.send_response(200)
            self.send_header("ETag", f'"{found.name}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command == "GET":
                asked.append(self.path)
                self.wfile.write(data)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def load_in_a_process(source, endpoint, home):
    """The real client, with its endpoint and cache set before it is imported."""
    script = ("import sys, torch\nfrom spit import load_model as load\nfrom spit.errors import WeightsError\n"
              "try:\n    print(load(sys.argv[1]).head.linear.weight.sum().item())\n"
              "except WeightsError as error:\n    print('WeightsError', error)")
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1",
                   "PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "127.0.0.1", "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    done = subprocess.run([sys.executable, "-c", script, source], env=environment, capture_output=True, text=True,
                          timeout=120, check=True)
    return (done.stdout + done.stderr).strip()


@pytest.mark.parametrize("revision", [None, "v1"])
def test_hub(tmp_path, revision):
    pytest.importorskip("huggingface_hub")
    model, folder = tiny(), tmp_path / "served"
    save(model, folder)
    source = "owner/name" if revision is None else f"owner/name@{revision}"
    with hub(folder, revision or "main") as (endpoint, asked):
        answer = load_in_a_process(source, endpoint, tmp_path / "home")
    assert float(answer) == pytest.approx(model.head.linear.weight.sum().item())
    assert asked == [f"/owner/name/resolve/{revision or 'main'}/{CONFIG}",
                     f"/owner/name/resolve/{COMMIT}/{weights_of(folder)[0].name}"]
    assert load_in_a_process(source, endpoint, tmp_path / "home") == answer, "from the cache, now without the hub"
    other = load_in_a_process("owner/other", endpoint, tmp_path / "home")
    assert other == ("WeightsError owner/other: no such folder, no answer from the Hugging Face hub, and nothing in "
                     "its cache; check the name and the network")


def test_hub_without_the_repository(tmp_path):
    pytest.importorskip("huggingface_hub")
    with hub(tmp_path) as (endpoint, _):
        answer = load_in_a_process("owner/other", endpoint, tmp_path / "home")
    assert answer.startswith("WeightsError no config.json of owner/other on the hub, nor such a folder here")




@pytest.mark.parametrize("dtype", ["float32", "cpu", torch.int64, None])
def test_a_dtype_is_no_device(tmp_path, dtype):
    with pytest.raises(TypeError, match=r"expected dtype as a floating torch.dtype"):
        load(save(tiny(), tmp_path), dtype)


@pytest.mark.parametrize(("key", "value"), [
    ("num_classes", 2**63), ("num_classes", 2**40), ("num_classes", 10**7), ("depth", 2**63), ("depth", 1000),
    ("width", 2**63), ("width", 2**16), ("channels", 1000), ("resolution", 1024), ("position_bins", 1024),
    ("eval_size", 2**63), ("mlp_ratio", 1e30)])
def test_a_config_that_asks_for_too_much_is_refused_before_it_is_made(tmp_path, monkeypatch, key, value):
    folder = save(tiny(), tmp_path)
    document = json.loads((folder / CONFIG).read_text())
    document["model"][key] = value
    (folder / CONFIG).write_text(json.dumps(document))

    class Forbidden(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            made = function(*args, **(kwargs or {}))
            if isinstance(made, torch.Tensor) and not made.is_meta:
                assert made.numel() < 10**6
            return made

    with Forbidden(), pytest.raises(WeightsError):
        load(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(tmp_path, value):
    model = tiny()
    with torch.no_grad():
        model.head.linear.weight[1, 2] = value
    with pytest.raises(WeightsError, match=r"expected finite weights, got NaN or infinity in head.linear.weight"):
        load(save(model, tmp_path))
