"""spit.runtime: torch's answers from an exported file, in a process that cannot import torch."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut, chelsea, coffee

import spit
import spit.runtime
from spit.errors import WeightsError
from spit.runtime.pipeline import FORMAT, KEY, Answer, Runtime, read_description

DESCRIPTION = {"input": "tokens", "size": 224, "crop": None, "tokenizer": "patch", "tokenizer_options": {},
               "features": {}, "class_names": [], "num_classes": 2, "precision": "float32", "digest": ""}
BARRED = """
import sys
for name in ("torch", "safetensors", "onnx", "onnxscript", "typer", "rich", "skimage", "scipy", "huggingface_hub"):
    sys.modules[name] = None
import spit.runtime
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", BARRED + code, *arguments], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_never_imports_torch() -> None:
    assert run(
        "import numpy as np\n"
        "from spit.runtime.tokenizers import make_tokenizer\n"
        "from spit.runtime.features import make_extractor\n"
        "image = (np.arange(3 * 24 * 24) % 251).astype(np.uint8).reshape(3, 24, 24)\n"
        "for name in ('patch', 'voronoi', 'superpixel'):\n"
        "    found = make_tokenizer(name, {})(image)\n"
        "    assert make_extractor({})(image, found).shape == (found.count, 1280)\n"
        "print(sys.modules['torch'], [name for name in sys.modules if name.startswith('torch.')])\n"
    ) == "None []"


def test_an_answer_is_shown_in_a_line() -> None:
    zeros = np.zeros((2, 4), np.float32)
    labels = np.arange(48, dtype=np.int32).reshape(8, 6) // 24
    answer = Answer(labels, np.log(np.float32([1, 3])), zeros[0], zeros, ("cat", "dog"))
    assert repr(answer) == "Answer(dog, 75.0%; 2 tokens of 8 × 6 pixels)"


def test_it_answers_as_torch_does_without_torch(exported: Path, tmp_path: Path) -> None:
    photo = tmp_path / "cat.png"
    Image.fromarray(chelsea()).save(photo)
    lines = run(
        "import json\n"
        "answer = spit.runtime.load(sys.argv[1])(sys.argv[2])\n"
        "print(json.dumps([answer.labels.tolist(), answer.logits.tolist(), answer.top(2)]))\n",
        str(exported), str(photo))
    labels, logits, top = json.loads(lines)
    prediction = spit.load("spit_tiny_16", device="cpu")(photo)
    assert labels == prediction.partition.labels[0].tolist()
    np.testing.assert_allclose(logits, prediction.logits[0].numpy(), atol=1e-4)
    assert [name for name, _ in top] == [guess.name for guess in prediction.top(2)[0]]


@pytest.mark.parametrize("photo", [astronaut, coffee])
def test_every_kind_of_image_and_the_whole_of_it(exported: Path, photo: object, tmp_path: Path) -> None:
    pixels = photo()[:200, :260]
    runtime = spit.runtime.load(exported, threads=1)
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path)
    answers = [runtime(given) for given in (pixels, Image.fromarray(pixels), path, path.read_bytes())]
    for answer in answers[1:]:
        assert np.array_equal(answer.logits, answers[0].logits)
    whole = runtime(pixels, crop=False)
    expected = spit.load("spit_tiny_16", device="cpu")(pixels, crop=False)
    assert np.array_equal(whole.labels, expected.partition.labels[0].numpy())
    np.testing.assert_allclose(whole.logits, expected.logits[0].numpy(), atol=1e-4)
    np.testing.assert_allclose(whole.class_token, expected.class_token[0].numpy(), atol=1e-4)
    np.testing.assert_allclose(whole.tokens, expected.tokens.values.numpy(), atol=1e-3)
    assert whole.probabilities.sum() == pytest.approx(1, abs=1e-5)
    assert "superpixel tokens, 288 px, float32" in repr(runtime)


def test_arrays_that_are_no_images_are_refused(exported: Path) -> None:
    runtime = spit.runtime.load(exported, threads=1)
    for given in (np.zeros((8, 8, 3)), np.zeros((8, 8, 4), np.uint8), np.zeros((0, 8, 3), np.uint8)):
        with pytest.raises(ValueError, match="uint8 array, got"):
            runtime(given)
    with pytest.raises(TypeError, match="expected one image, got a list; call the runtime for each"):
        runtime(["a.jpg", "b.jpg"])
    with pytest.raises(ValueError, match="resize the image first"):
        runtime(np.zeros((600, 600, 3), np.uint8), crop=False)


def test_what_an_answer_cannot_say() -> None:
    headless = Answer(np.zeros((2, 2), np.int32), np.zeros(4), np.zeros(4), np.zeros((1, 4)), ())
    with pytest.raises(ValueError, match="without a head"):
        headless.top()
    with pytest.raises(WeightsError, match="export the model again"):
        Runtime(None, {**DESCRIPTION, "input": "pixels"})


def test_files_that_are_no_exports_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    with pytest.raises(WeightsError, match=r"no file .*spit export"):
        spit.runtime.load(tmp_path / "nowhere.onnx")
    (tmp_path / "damaged.onnx").write_bytes(b"nothing")
    with pytest.raises(WeightsError, match="not an ONNX file"):
        spit.runtime.load(tmp_path / "damaged.onnx")


@pytest.mark.parametrize(("text", "reason"), [
    (None, f"no metadata '{KEY}'"),
    ("[", "not what spit export writes"),
    ("[1]", "not what spit export writes"),
    (json.dumps({"format": FORMAT + 1}), "this version of spit reads"),
])
def test_metadata_that_cannot_be_read(text: str | None, reason: str) -> None:
    with pytest.raises(WeightsError, match=reason):
        read_description(text, "a.onnx")


@pytest.mark.parametrize("change", [
    {"size": -1}, {"size": "large"}, {"crop": 0}, {"tokenizer": "rows"}, {"tokenizer_options": {"levels": 1e9}},
    {"features": {"resolution": 0}}, {"extractor": "mean_color"}, {"class_names": None, "num_classes": "many"},
])
def test_metadata_out_of_range(change: dict[str, object]) -> None:
    Runtime(None, DESCRIPTION)
    with pytest.raises(WeightsError):
        Runtime(None, {**DESCRIPTION, **change})
