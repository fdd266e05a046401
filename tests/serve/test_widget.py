"""``prediction.show()`` and what notebooks show of other objects."""

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import spit
from spit.serve.widget import ENTRY, bundle, show, static_picture, widget_css

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOST = """<!doctype html><html lang="en"><title>host</title><body><div id="cell"></div></body></html>"""
# What a notebook gives a widget: traits by name, events, and the other side's answer to a change.
MODEL = """([traits, css, source]) => {
    const decode = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
    const listeners = [], values = Object.fromEntries(Object.entries(traits).map(([name, value]) => [name,
        value?.bytes === undefined ? value : decode(value.bytes)]));
    const model = {values, get: (name) => values[name], set: (name, value) => { values[name] = value; },
        on: (name, run) => listeners.push([name, run]),
        off: (name, run) => listeners.splice(listeners.findIndex((one) => one[1] === run), 1),
        save_changes: async () => { Object.assign(values, await readAttention(values.layer));
            listeners.filter(([name]) => name === "change:attention").forEach(([, run]) => run()); }};
    window.model = model;
    const readAttention = async (layer) => { const {attention, attention_layer} = await ask_python(layer);
        return {attention_layer, attention: decode(attention)}; };
    const style = document.createElement("style");
    style.textContent = css;
    document.head.append(style);
    return import(URL.createObjectURL(new Blob([source], {type: "text/javascript"})))
        .then((module) => module.default.render({model, el: document.getElementById("cell")}));
}"""


@pytest.fixture(scope="module")
def prediction() -> spit.Prediction:
    from skimage import data

    image = Image.fromarray(data.chelsea()).resize((150, 100), Image.Resampling.BICUBIC)
    return spit.load("spit_tiny_16", device="cpu")(torch.from_numpy(np.array(image)).movedim(-1, 0))


def opened(data: bytes | None) -> Image.Image:
    assert data is not None
    return Image.open(io.BytesIO(data))


def test_pictures_of_a_notebook(prediction: spit.Prediction) -> None:
    for thing in (prediction, prediction.partition, prediction.segment()):
        picture = opened(thing._repr_png_())
        assert picture.format == "PNG"
        assert min(picture.size) > 200
        assert len(np.unique(np.asarray(picture.convert("L")))) > 10


def test_pictures_of_batches(photo: Callable[[str, int], Tensor]) -> None:
    images = [photo("coffee", side) for side in (40, 64, 48, 40, 40, 56)]
    one, many = (spit.create_model("spit_tiny_16", num_classes=classes).eval() for classes in (0, 10))
    seen = spit.Predictor(one)(images)
    assert opened(seen._repr_png_()).width > opened(spit.Predictor(many)(images[:1])._repr_png_()).width
    assert opened(seen.partition._repr_png_()).width > opened(seen.partition[0]._repr_png_()).width
    found = seen.segment(method="cut")
    assert opened(found._repr_png_()).width > 4 * 200


def test_pictures_of_other_channels() -> None:
    tokenizer = spit.PatchTokenizer(8)
    part = tokenizer(torch.rand(2, 5, 32, 32))
    assert opened(part._repr_png_()).width > 300


def test_without_anywidget_a_picture(prediction: spit.Prediction) -> None:
    with patch("spit.serve.widget.find_spec", return_value=None):
        picture = prediction.show()
    assert isinstance(picture, Image.Image)
    assert picture.size == (150, 100)
    with pytest.raises(IndexError, match="from 0 to 0"):
        prediction.show(1)


def test_import_needs_no_widget() -> None:
    script = "import sys, spit, spit.serve.widget; assert not {'anywidget', 'fastapi', 'IPython'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_bundle_is_one_module(tmp_path: Path) -> None:
    made = bundle(ENTRY)
    assert "\nimport " not in made
    assert made.count("export ") == 1
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node to check the module with")
    (tmp_path / "widget.mjs").write_text(made)
    subprocess.run([node, "--check", tmp_path / "widget.mjs"], check=True)


def test_bundle_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    with patch("spit.serve.widget.PAGE", tmp_path):
        (tmp_path / "js").mkdir()
        (tmp_path / "js" / "odd.js").write_text('export * from "./other.js";\n')
        with pytest.raises(ValueError, match=r"odd\.js"):
            bundle(tmp_path / "js" / "odd.js")


def test_style_is_of_the_widget_alone() -> None:
    style = widget_css()
    assert ":root" not in style
    assert "@keyframes" not in style
    assert style.startswith(".spit-widget {")
    assert style.count("{") == style.count("}")


def traits_of(widget: Any) -> dict[str, Any]:
    import base64

    names = ("about", "image", "labels", "parents", "tokens", "regions", "attention", "layer", "attention_layer")
    values = {name: getattr(widget, name) for name in names}
    return {name: {"bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
            for name, value in values.items()}


def test_widget_sends_a_layer_when_asked(prediction: spit.Prediction) -> None:
    pytest.importorskip("anywidget")
    widget = show(prediction)
    assert json.loads(widget.about)["levels"][0] == {"regions": 150 * 100}
    assert widget.attention == b""
    widget.layer = 3
    count = prediction.partition.host_counts[0] + 1
    [attention] = prediction.predictor.model(prediction.images[0][None], record=("attention",)).attention[3]
    sent = np.frombuffer(widget.attention, "<f2").reshape(-1, count, count)
    assert np.allclose(sent, attention.detach().numpy(), atol=1e-3)
    made = widget._repr_mimebundle_()
    data = made[0] if isinstance(made, tuple) else made
    assert opened(data["image/png"]).size == static_picture(prediction).size


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; apt-get install chromium")
def test_widget_in_a_browser(prediction: spit.Prediction) -> None:
    """The bundle in Chromium, with the widget's own traits and answers; what lies between is the notebook's."""
    import base64

    pytest.importorskip("anywidget")
    playwright = pytest.importorskip("playwright.sync_api")
    widget = show(prediction)

    def answer(layer: int) -> dict[str, Any]:
        widget.layer = layer
        return {"attention": base64.b64encode(widget.attention).decode(), "attention_layer": widget.attention_layer}

    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page, errors = browser.new_page(viewport={"width": 1000, "height": 800}), []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.expose_function("ask_python", answer)
        page.set_content(HOST)
        page.evaluate(MODEL, [traits_of(widget), widget_css(), bundle(ENTRY)])
        page.wait_for_selector(".spit-widget .stage-canvas")
        box = page.locator(".stage-canvas").bounding_box()
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
        page.wait_for_timeout(300)
        token = int(prediction.partition.labels[0, 50, 75])
        assert f"Token {token}" in page.inner_text(".token-card")
        page.get_by_role("radio", name="Attends to").click()
        page.get_by_label("Layer").select_option("4")
        page.wait_for_function("document.querySelector('.spit-widget').explorer.view.hovering.layer === 4")
        assert widget.attention_layer == 4
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgba(0, 0, 0, 0)"  # the notebook's own, not the page's
        assert page.locator(".stage-canvas").bounding_box()["width"] > 300
        shot = page.screenshot()
        browser.close()
    assert errors == []
    assert len(np.unique(np.asarray(opened(shot).convert("L")))) > 100
