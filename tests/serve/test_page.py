"""The explorer's page in a real browser (Debian's Chromium, driven by Playwright) on a real server.

Without Playwright or Chromium these tests are skipped; ``.ci/run`` installs both where it can.
"""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import spit

pytest.importorskip("fastapi")
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; apt-get install chromium")

TABS = ("tokens", "classify", "explain", "segment", "correspond", "compare")
WAIT = 60_000  # ms; the machine may be busy


def start_server(*options: str) -> tuple[subprocess.Popen[str], str]:
    """``spit serve`` on a free port, and its address."""
    process = subprocess.Popen([sys.executable, "-m", "spit.cli", "serve", "--port", "0", "--device", "cpu",
                                "--time-limit", "300", *options],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={**os.environ, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"})
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        found = re.search(r"http://\S+/", line)
        if found:
            return process, found[0]
    raise AssertionError("".join(lines))


def stop_server(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate(timeout=60)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    process, found = start_server()
    yield found
    stop_server(process)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Guest:
    """A page with a record of what went wrong on it and of what it asked for."""

    def __init__(self, browser: Any, address: str, query: str = "", ready: str = "body[data-ready]",
                 **options: Any) -> None:
        self.address = address
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, "accept_downloads": True,
                                              **options})
        self.context.set_default_timeout(WAIT)
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address + query)
        self.page.wait_for_selector(ready, state="attached")

    def settle(self) -> None:
        """Wait until nothing runs and what was asked for is painted."""
        self.page.wait_for_timeout(250)
        self.page.wait_for_selector("body:not([data-busy])", state="attached")
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def open(self, name: str, data: bytes, kind: str = "image/png") -> None:
        self.page.set_input_files("#file", {"name": name, "mimeType": kind, "buffer": data})

    def choose(self, name: str, data: bytes) -> None:
        """Open a picture through the button, as a user does."""
        with self.page.expect_file_chooser() as chooser:
            self.page.click("#choose")
        chooser.value.set_files({"name": name, "mimeType": "image/png", "buffer": data})
        self.page.wait_for_selector("#view:not([hidden])")
        self.settle()

    def tab(self, name: str) -> None:
        self.page.click(f"#tab-{name}")
        self.settle()

    def until(self, script: str) -> None:
        """Wait until an expression is true; Playwright's own way would need a weaker content security policy."""
        deadline = time.monotonic() + WAIT / 1000
        while not self.page.evaluate(f"() => Boolean({script})"):
            assert time.monotonic() < deadline, f"never: {script}"
            self.page.wait_for_timeout(30)

    def ask(self, script: str, value: Any = None) -> Any:
        return self.page.evaluate(script, value)

    def move(self, x: float, y: float, canvas: int = 0) -> None:
        """Point at a share of the width and height of a picture."""
        box = self.page.locator(".stage-canvas").nth(canvas).bounding_box()
        self.page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y)
        self.page.wait_for_timeout(120)

    def canvas(self) -> np.ndarray:
        """The pixels of the picture on the screen."""
        shot = self.page.locator(".stage-canvas").first.screenshot()
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)

    def download(self, words: str) -> bytes:
        with self.page.expect_download() as found:
            self.page.locator(".download", has_text=words).first.click()
        return Path(found.value.path()).read_bytes()

    def close(self) -> None:
        self.context.close()


Make = Callable[..., Guest]


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Make]:
    """``visit()`` opens the page; afterwards, nothing may have gone wrong on it or left this machine."""
    guests: list[Guest] = []

    def make(query: str = "", **options: Any) -> Guest:
        guests.append(Guest(browser, address, query, **options))
        return guests[-1]

    yield make
    for guest in guests:
        errors, requests = guest.errors, guest.requests
        guest.close()
        assert errors == []
        assert [url for url in requests if not url.startswith((address, "blob:", "data:"))] == []


@pytest.fixture(scope="module")
def cat() -> bytes:
    from skimage import data

    return png(np.asarray(Image.fromarray(data.chelsea()).resize((300, 200), Image.Resampling.BICUBIC)))


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def prediction(cat: bytes) -> spit.Prediction:
    pixels = torch.from_numpy(np.array(Image.open(io.BytesIO(cat)))).movedim(-1, 0)
    return spit.load("spit_tiny_16", device="cpu")(pixels, crop=False)


def run_snippet(guest: Guest, folder: Path, files: dict[str, bytes], value: str) -> Any:
    """Run the snippet that the page shows, beside files of the names that it reads; the value of an expression."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    code = guest.ask("document.getElementById('snippet').textContent")
    ended = subprocess.run([sys.executable, "-W", "error", "-c", f"{code}\nimport json; print(json.dumps({value}))"],
                           cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, f"{code}\n{ended.stderr}"
    return json.loads(ended.stdout.splitlines()[-1])


def test_upload_shows_the_tokens_of_python(visit: Make, cat: bytes, prediction: spit.Prediction) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    labels = np.array(guest.ask("Array.from(explorer.picture.labels())"), np.int32).reshape(200, 300)
    assert np.array_equal(labels, prediction.partition.labels[0].numpy())  # the PNG and the parents were read right
    assert f"{prediction.partition.host_counts[0]} tokens" in guest.page.inner_text(".stage-caption")
    sizes = guest.ask("Array.from(explorer.picture.statistics().sizes)")
    assert sizes == prediction.partition.sizes().tolist()


def test_paste(visit: Make, cat: bytes) -> None:
    guest = visit(permissions=["clipboard-read", "clipboard-write"])
    guest.ask("""async (bytes) => navigator.clipboard.write([new ClipboardItem({"image/png":
        new Blob([new Uint8Array(bytes)], {type: "image/png"})})])""", list(cat))
    guest.page.focus("#main")
    guest.page.keyboard.press("Control+V")
    guest.page.wait_for_selector("#view:not([hidden])")
    assert guest.ask("[explorer.picture.width, explorer.picture.height]") == [300, 200]


def test_drop(visit: Make, cat: bytes) -> None:
    guest = visit()
    held = guest.page.evaluate_handle("""(bytes) => {
        const held = new DataTransfer();
        held.items.add(new File([new Uint8Array(bytes)], "dropped.png", {type: "image/png"}));
        return held; }""", list(cat))
    guest.page.dispatch_event("body", "dragenter", {"dataTransfer": held})
    assert guest.page.is_visible("#veil")
    guest.page.dispatch_event("body", "drop", {"dataTransfer": held})
    guest.page.wait_for_selector("#view:not([hidden])")
    assert "dropped.png" in guest.page.inner_text(".stage-caption")
    assert not guest.page.is_visible("#veil")


def test_sample(visit: Make) -> None:
    guest = visit()
    guest.page.locator(".sample").first.click()
    guest.page.wait_for_selector("#view:not([hidden])")
    guest.settle()


def test_slider_walks_the_hierarchy(visit: Make, cat: bytes) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    counts, seen, views = guest.ask("explorer.picture.counts"), [], []
    assert counts[0] == 300 * 200
    assert all(fine > coarse for fine, coarse in pairwise(counts))
    guest.page.focus("#level")
    guest.page.keyboard.press("Home")
    guest.settle()
    for _ in guest.ask("explorer.picture.shown"):
        seen.append(int(re.sub(r"\D", "", guest.page.inner_text(".level-value"))))
        views.append(guest.canvas())
        guest.page.keyboard.press("ArrowRight")
        guest.settle()
    assert seen == [counts[level] for level in guest.ask("explorer.picture.shown")]
    assert all((one != other).any() for one, other in pairwise(views))
    nested = guest.ask("""() => { const picture = explorer.picture; return picture.shown.slice(1, -1).every((level) => {
        const fine = picture.labels(level), coarse = picture.labels(level + 1), parent = new Map();
        return fine.every((label, i) =>
            (parent.get(label) ?? parent.set(label, coarse[i]).get(label)) === coarse[i]); }); }""")
    assert nested


def test_other_tokens(visit: Make, cat: bytes) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    before = guest.ask("explorer.picture.tokens")
    guest.page.get_by_label("Token budget").fill("1")  # 64 tokens
    guest.until("explorer.picture.tokens === 64")
    guest.page.get_by_label("Compactness").fill("0.2")
    guest.page.get_by_label("Refinement").fill("2")
    guest.until("explorer.picture.options.refine === 2 && explorer.picture.options.compactness === 0.2")
    guest.page.get_by_role("button", name="As the model was trained").click()
    guest.until(f"explorer.picture.tokens === {before}")
    guest.page.get_by_label("Tokenizer").select_option("patch")
    guest.until(f"explorer.picture.tokens === {19 * 13}")
    guest.settle()


def test_hover_shows_what_is_like_a_token(visit: Make, cat: bytes, prediction: spit.Prediction) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    before = guest.canvas()
    guest.move(0.4, 0.4)
    token = guest.ask("explorer.stage.hover")
    assert token == int(prediction.partition.labels[0, 80, 120])
    assert (guest.canvas() != before).mean() > 0.3
    card = guest.page.inner_text(".token-card")
    assert f"Token {token}" in card
    assert f"{int(prediction.partition.sizes()[token])} px" in card
    units = torch.nn.functional.normalize(prediction.tokens.values.half().float(), dim=1)
    cosines = units @ units[token]
    shown = np.array(guest.ask("Array.from(explorer.view.hovering.values)"))
    assert np.allclose(shown, cosines.numpy(), atol=2e-3)
    like = guest.ask("Array.from(document.querySelectorAll('.like-one'), (one) => Number(one.dataset.token))")
    cosines[token] = -1
    assert float(cosines[like[0]]) == pytest.approx(float(cosines.max()), abs=2e-3)
    guest.page.mouse.move(2, 2)
    guest.settle()
    assert guest.ask("explorer.stage.hover") == -1


def test_hover_shows_what_a_token_attends_to(visit: Make, cat: bytes, prediction: spit.Prediction) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    guest.page.get_by_role("radio", name="Attends to").click()
    guest.page.get_by_label("Layer").select_option("2")
    guest.page.get_by_label("Head").select_option("1")
    guest.settle()
    guest.move(0.4, 0.4)
    token = guest.ask("explorer.stage.hover")
    [attention] = prediction.predictor.model(prediction.images[0][None], record=("attention",)).attention[2]
    shown = guest.ask("Array.from(explorer.view.hovering.values)")
    assert np.allclose(shown, attention[1, token + 1, 1:].detach().numpy(), atol=1e-3)


def test_the_card_of_a_token(visit: Make, cat: bytes, prediction: spit.Prediction) -> None:
    """Size, colours and texture of the token, and pictures of those like it."""
    guest = visit()
    guest.choose("cat.png", cat)
    assert "Point at the picture" in guest.page.inner_text(".token-card")
    guest.move(0.4, 0.4)
    guest.settle()
    inside = prediction.partition.labels[0].numpy() == guest.ask("explorer.stage.hover")
    pixels = np.asarray(Image.open(io.BytesIO(cat))).astype(float)
    shown = guest.page.locator(".token-card .color-row .mono").inner_text().lstrip("#")
    assert np.abs(np.array([int(shown[at : at + 2], 16) for at in (0, 2, 4)]) - pixels[inside].mean(0)).max() <= 1
    assert guest.page.locator(".token-card .palette span:visible").count() >= 1
    grey = pixels.mean(2) / 255
    texture = np.hypot(*np.gradient(grey))[inside].mean()
    facts = dict(zip(*(guest.page.locator(f".facts {name}").all_inner_texts() for name in ("dt", "dd")), strict=True))
    assert float(facts["Texture"].split()[0]) == pytest.approx(texture, abs=1e-3)
    assert 0 < float(facts["Compactness"]) <= 1
    pictures = guest.ask("""() => Array.from(document.querySelectorAll('.like-one canvas'), (canvas) =>
        new Set(canvas.getContext("2d").getImageData(0, 0, 56, 56).data).size)""")
    assert len(pictures) == 5
    assert min(pictures) > 8  # each shows a part of the photo


def test_a_click_holds_a_token(visit: Make, cat: bytes) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    guest.move(0.4, 0.4)
    held = guest.ask("explorer.stage.hover")
    guest.page.mouse.down()
    guest.page.mouse.up()
    guest.move(0.8, 0.7)
    assert guest.ask("explorer.stage.hover") == held
    guest.page.locator(".like-one").first.click()
    assert guest.ask("explorer.stage.hover") != held


def test_keyboard(visit: Make, cat: bytes) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    guest.page.focus(".stage-canvas")
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp"):
        guest.page.keyboard.press(key)
        seen.append(guest.ask("explorer.stage.hover"))
    assert len(set(seen[:4])) == 4
    x = guest.ask("(n) => n.map((one) => explorer.picture.statistics().xs[one])", seen[:2])
    assert x[1] > x[0]
    guest.until(f"document.getElementById('live').textContent.includes('Token {seen[-1]}')")
    guest.page.keyboard.press("Enter")
    assert guest.ask("explorer.stage.pinned") == seen[-1]
    guest.page.keyboard.press("Escape")
    assert guest.ask("[explorer.stage.pinned, explorer.stage.hover]") == [-1, -1]
    guest.page.focus("#tab-tokens")
    for name in (*TABS[1:], "tokens"):
        guest.page.keyboard.press("ArrowRight")
        assert guest.page.get_attribute(f"#tab-{name}", "aria-selected") == "true"
        assert guest.ask("document.activeElement.id") == f"tab-{name}"
        guest.settle()


def test_classify_and_explain(visit: Make, cat: bytes, prediction: spit.Prediction) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    guest.tab("classify")
    top = prediction.top(10)[0]
    assert guest.page.locator(".classes .class-name").all_inner_texts() == [name for name, _ in top]
    assert guest.page.locator(".classes .mono").first.inner_text() == f"{100 * top[0].probability:.1f} %"
    guest.page.locator(".class-row").nth(1).click()
    guest.settle()
    assert guest.page.get_attribute("#tab-explain", "aria-selected") == "true"
    expected = prediction.explain("relevance", target=top[1].name)[0]
    labels = prediction.partition.labels[0].long()
    values = torch.zeros(prediction.partition.host_counts[0])
    values[labels.flatten()] = expected.flatten()
    shown = np.array(guest.ask("Array.from(explorer.view.values)"))
    assert np.allclose(shown, values.numpy(), atol=2e-3 * float(values.abs().max()))
    before = guest.canvas()
    guest.page.get_by_label("Opacity").fill("0.2")
    guest.settle()
    faint = guest.canvas()
    guest.page.get_by_label("Colour scale").select_option("viridis")
    guest.settle()
    assert (before != faint).mean() > 0.3
    assert (faint != guest.canvas()).mean() > 0.3
    guest.page.get_by_label("Class", exact=True).select_option("other")
    guest.page.get_by_label("Another class").fill("lynx")
    guest.page.keyboard.press("Enter")
    guest.until("explorer.view.target === 'lynx'")
    guest.settle()


def test_progress_is_the_servers(visit: Make, cat: bytes) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    guest.tab("explain")
    guest.ask("""(() => {
        const status = document.getElementById("status");
        globalThis.said = [];
        new MutationObserver(() => said.push(status.textContent)).observe(status, {childList: true, subtree: true});
    })()""")
    guest.page.get_by_label("Method").select_option("token_rise")
    guest.until("said.some((text) => /\\d+ of [1-9]\\d*/.test(text))")
    guest.page.wait_for_selector("body:not([data-busy])", state="attached")
    assert guest.page.inner_text("#status") == ""


def test_segment_and_edit(visit: Make, cat: bytes, prediction: spit.Prediction, tmp_path: Path) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    guest.tab("segment")

    def mask() -> np.ndarray:
        return np.array(guest.ask("Array.from(explorer.view.mask)"), bool).reshape(200, 300)

    expected = prediction.segment().mask[0].numpy()
    assert np.array_equal(mask(), expected)
    guest.page.get_by_role("radio", name="Raw").click()
    guest.settle()
    raw = prediction.segment(clean=False).mask[0].numpy()
    assert np.array_equal(mask(), raw)
    labels = prediction.partition.labels[0].numpy()
    guest.move(0.5, 0.5)
    region = labels == guest.ask("explorer.stage.hover")
    before = guest.canvas()
    guest.page.mouse.down()
    guest.page.mouse.up()
    guest.settle()
    changed = mask() != raw
    assert changed.any()
    assert np.array_equal(changed, region & changed)
    assert len(np.unique(mask()[region])) == 1
    assert (guest.canvas() != before).any()
    assert guest.page.inner_text(".figure") == f"{100 * mask().mean():.1f} %"
    edited = mask()
    guest.until("document.getElementById('snippet').textContent.includes('changed by hand')")
    assert np.array_equal(run_snippet(guest, tmp_path, {"cat.png": cat}, "mask.tolist()"), edited)
    document = json.loads(guest.download("COCO-RLE"))
    found = document["annotation"]["segmentation"]
    runs = np.repeat(np.arange(len(found["counts"])) % 2 == 1, found["counts"])
    assert np.array_equal(runs.reshape(found["size"], order="F"), edited)
    assert document["annotation"]["area"] == edited.sum()
    white = np.asarray(Image.open(io.BytesIO(guest.download("Mask PNG"))).convert("L"))
    assert np.array_equal(white > 127, edited)
    cutout = np.asarray(Image.open(io.BytesIO(guest.download("Cut-out PNG"))))
    assert np.array_equal(cutout[:, :, 3] > 0, edited)
    guest.page.get_by_role("button", name="Undo").click()
    assert np.array_equal(mask(), raw)
    guest.until("!document.getElementById('snippet').textContent.includes('changed by hand')")
    for look in ("Cut-out", "Soft map", "Mask"):
        guest.page.get_by_role("radio", name=look).click()
        guest.settle()
    guest.page.get_by_label("Outline regions").check(force=True)
    guest.settle()


def test_a_drag_edits_several_regions(visit: Make, cat: bytes) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    guest.tab("segment")
    before = guest.ask("explorer.view.mask.reduce((sum, one) => sum + one, 0)")
    guest.move(0.3, 0.5)
    guest.page.mouse.down()
    for x in (0.4, 0.5, 0.6, 0.7):
        guest.move(x, 0.5)
    guest.page.mouse.up()
    assert guest.ask("explorer.view.edits.length") >= 4
    assert len({edit["on"] for edit in guest.ask("explorer.view.edits")}) == 1
    assert guest.ask("explorer.view.mask.reduce((sum, one) => sum + one, 0)") != before
    guest.page.get_by_role("button", name="Reset").click()
    assert guest.ask("explorer.view.mask.reduce((sum, one) => sum + one, 0)") == before


def test_correspond(visit: Make, cat: bytes, tmp_path: Path) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    guest.tab("correspond")
    mirrored = np.asarray(Image.open(io.BytesIO(cat)))[:, ::-1]
    with guest.page.expect_file_chooser() as chooser:
        guest.page.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files({"name": "mirrored.png", "mimeType": "image/png", "buffer": png(mirrored)})
    guest.until("explorer.view.slots.length === 2")
    guest.settle()
    hits = 0
    for x, y in ((0.42, 0.38), (0.72, 0.42), (0.6, 0.75)):  # two eyes and the nose
        guest.move(x, y)
        guest.settle()
        best = guest.ask("""() => { const [, other] = explorer.view.slots, {xs, ys} = other.picture.statistics();
            const at = other.stage.hover; return [xs[at] / 300, ys[at] / 200]; }""")
        hits += abs(1 - best[0] - x) < 0.15 and abs(best[1] - y) < 0.15
        assert "best cosine" in guest.page.inner_text("#panel")
    assert hits >= 2  # the same parts, on the other side
    guest.page.get_by_label("Only the object of each picture").check(force=True)
    guest.settle()
    guest.page.locator(".slot-empty .sample").nth(1).click()
    guest.until("explorer.view.slots.length === 3")
    guest.settle()
    matches = json.loads(guest.download("JSON"))["matches"]
    assert len(matches) == 2
    names = guest.ask("explorer.view.slots.map((slot) => slot.picture.file.name)")
    guest.until(f"document.getElementById('snippet').textContent.includes('{names[2]}')")
    files = {"cat.png": cat, "mirrored.png": png(mirrored), names[2]: bytes(guest.ask(
        "async () => Array.from(new Uint8Array(await explorer.view.slots[2].picture.file.arrayBuffer()))"))}
    shown = [cosine for _, _, cosine in matches[1]]
    assert np.allclose(run_snippet(guest, tmp_path, files, "best.tolist()"), shown, atol=2e-3)
    guest.page.get_by_role("button", name="Remove mirrored.png").click()
    assert guest.ask("explorer.view.slots.length") == 2


def test_compare(visit: Make, cat: bytes, prediction: spit.Prediction, tmp_path: Path) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    guest.tab("compare")
    guest.until("explorer.view.slots.length === 3")
    guest.settle()
    titles = guest.ask("explorer.view.slots.map((slot) => slot.title)")
    assert titles == ["Square patches", "Voronoi cells", "Superpixels"]
    best = guest.ask("explorer.view.slots.map((slot) => slot.picture.about.classes[0])")
    for name, found in zip(("patch", "voronoi", "superpixel"), best, strict=True):
        other = prediction if name == "superpixel" else prediction.with_tokenizer(name)
        assert found["name"] == other.top(1)[0][0].name
        assert found["probability"] == pytest.approx(other.top(1)[0][0].probability, abs=1e-4)
    guest.move(0.5, 0.5, canvas=2)
    guest.settle()
    assert guest.page.inner_text("#panel").count(" px") == 3
    for look in ("Mean colours", "Attention", "Relevance"):
        guest.page.get_by_role("radio", name=look).click()
        guest.settle()
    guest.page.get_by_role("radio", name="Two models").click()
    guest.until("explorer.view.slots.length === 2")
    guest.settle()
    models = guest.ask("explorer.view.slots.map((slot) => slot.title)")
    assert len(set(models)) == 2
    guest.until(f"document.getElementById('snippet').textContent.includes('{models[1]}')")
    said = run_snippet(guest, tmp_path, {"cat.png": cat}, "int(other.partition.counts[0])")
    assert said == guest.ask("explorer.view.slots[1].picture.tokens")


@pytest.mark.parametrize("name", TABS)
def test_every_view_can_be_taken_away(visit: Make, cat: bytes, name: str) -> None:
    guest = visit()
    guest.choose("cat.png", cat)
    guest.tab(name)
    if name == "compare":
        guest.until("explorer.view.slots.length === 3")
    guest.settle()
    picture = Image.open(io.BytesIO(guest.download("PNG")))
    assert picture.height == 200
    assert picture.width >= 300
    with np.load(io.BytesIO(guest.download("NPZ"))) as arrays:
        assert arrays["labels"].shape == (200, 300)
        assert len(arrays["tokens"]) == len(arrays["regions"]) == arrays["labels"].max() + 1
    document = json.loads(guest.download("COCO-RLE" if name == "segment" else "JSON"))
    assert (document["width"], document["height"]) == (300, 200)
    seen = np.asarray(Image.open(io.BytesIO(guest.download("Picture"))).convert("RGB"))
    assert np.array_equal(seen, np.asarray(Image.open(io.BytesIO(cat))))
    guest.until("document.getElementById('snippet').textContent.includes('spit.load')")
    compile(guest.page.inner_text("#snippet"), "snippet", "exec")


def test_copy(visit: Make, cat: bytes) -> None:
    guest = visit(permissions=["clipboard-read", "clipboard-write"])
    guest.choose("cat.png", cat)
    guest.until("document.getElementById('snippet').textContent.includes('spit.load')")
    guest.page.click("#copy")
    guest.until("document.getElementById('copy').textContent === 'Copied'")
    assert guest.ask("navigator.clipboard.readText()") == guest.ask("document.getElementById('snippet').textContent")


def test_a_broken_file_is_one_sentence(visit: Make, cat: bytes) -> None:
    guest = visit()
    guest.page.evaluate("() => { explorer.picked = (file) => explorer.open(file); }")
    for data, kind in ((cat[:2000], "image/png"), (b"not a picture", "image/png"), (b"", "image/jpeg"),
                       (b"a,b\n1,2\n", "text/csv")):
        guest.open("broken.png", data, kind)
        guest.page.wait_for_selector("#notice:not([hidden])")
        text = guest.page.inner_text("#notice p")
        assert 10 < len(text) < 200
        assert "Traceback" not in text
        assert "/" not in text.replace("image/", "")
        guest.page.click("#notice button")
    guest.errors[:] = [line for line in guest.errors if "Failed to load resource" not in line]  # the browser's own word
    guest.choose("cat.png", cat)  # and the page goes on


def test_a_huge_file_is_refused(visit: Make, cat: bytes) -> None:
    guest = visit()
    guest.page.evaluate("() => { explorer.picked = (file) => explorer.open(file); }")
    guest.open("huge.png", bytes(17 * 2**20))
    guest.page.wait_for_selector("#notice:not([hidden])")
    assert "MB" in guest.page.inner_text("#notice p")
    assert not any("pictures" in url for url in guest.requests)  # not even sent
    guest.page.click("#notice button")
    buffer = io.BytesIO()
    Image.new("1", (30_000, 30_000)).save(buffer, "PNG")  # 900 million pixels in 110 kB
    guest.open("bomb.png", buffer.getvalue())
    guest.page.wait_for_selector("#notice:not([hidden])")
    assert "pixels" in guest.page.inner_text("#notice p")
    guest.errors[:] = [line for line in guest.errors if "Failed to load resource" not in line]
    guest.choose("cat.png", cat)


def test_offline(visit: Make, cat: bytes) -> None:
    """Whatever is not this server is cut off, and every view still works."""
    guest = visit()
    guest.context.route(lambda url: not url.startswith((guest.address, "blob:", "data:")), lambda route: route.abort())
    guest.choose("cat.png", cat)
    for name in TABS:
        guest.tab(name)


def test_light_and_dark(visit: Make, cat: bytes) -> None:
    guest = visit(color_scheme="dark")
    assert guest.ask("document.documentElement.dataset.theme") == "dark"
    guest.page.click("#theme")
    assert guest.ask("document.documentElement.dataset.theme") == "light"
    guest.page.reload()
    guest.page.wait_for_selector("body[data-ready]", state="attached")
    assert guest.ask("document.documentElement.dataset.theme") == "light"
    assert guest.page.get_attribute("#theme", "aria-pressed") == "false"


def test_phone(visit: Make, cat: bytes) -> None:
    guest = visit(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True, device_scale_factor=2)
    guest.choose("cat.png", cat)
    box = guest.page.locator(".stage-canvas").first.bounding_box()
    guest.page.touchscreen.tap(box["x"] + 0.4 * box["width"], box["y"] + 0.4 * box["height"])
    guest.settle()
    assert guest.ask("explorer.stage.pinned") >= 0
    assert "px" in guest.page.inner_text(".token-card")
    for name in TABS:
        guest.tab(name)
        assert guest.ask("document.documentElement.scrollWidth") <= 360


def test_hover_asks_the_server_nothing(visit: Make, cat: bytes) -> None:
    """Similarity and highlights are computed in the browser; ``benchmarks/explorer.py`` times them."""
    guest = visit()
    guest.choose("cat.png", cat)
    guest.move(0.5, 0.5)
    guest.settle()
    asked = len(guest.requests)
    guest.ask("() => { explorer.stage.costs.length = 0; }")
    for step in range(20):
        guest.move(0.05 + 0.9 * step / 20, 0.1 + 0.8 * (step * 7 % 20) / 20)
    guest.page.get_by_role("radio", name="Mean colours").click()
    guest.settle()
    assert len(guest.ask("explorer.stage.costs")) >= 10  # each move is timed
    assert guest.requests[asked:] == []


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core's script, from npm."""
    npm, folder = shutil.which("npm"), tmp_path_factory.mktemp("axe")
    if npm is None:
        pytest.skip("no npm to fetch axe-core with")
    done = subprocess.run([npm, "pack", "axe-core@4"], cwd=folder, capture_output=True, timeout=120)
    if done.returncode:
        pytest.skip("npm cannot fetch axe-core here")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        found = archive.extractfile("package/axe.min.js")
        assert found is not None
        return found.read().decode()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Make, cat: bytes, axe: str, scheme: str) -> None:
    guest, faults = visit(color_scheme=scheme), []

    def look(where: str) -> None:
        guest.page.evaluate(axe)
        found = guest.page.evaluate("axe.run().then((found) => found.violations.map(({id, impact, nodes}) => "
                                    "({id, impact, nodes: nodes.slice(0, 3).map((node) => node.html.slice(0, 160))})))")
        faults.extend((where, one) for one in found if one["impact"] in ("serious", "critical"))

    look("welcome")
    guest.choose("cat.png", cat)
    guest.page.focus(".stage-canvas")
    guest.page.keyboard.press("ArrowRight")
    for name in TABS:
        guest.tab(name)
        look(name)
    assert faults == []


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """The address of a server with a token."""
    process, found = start_server("--token", "a-long-secret")
    yield found
    stop_server(process)


def test_a_token_in_the_address(browser: Any, guarded: str, cat: bytes) -> None:
    guest = Guest(browser, guarded, "#token=a-long-secret")
    guest.choose("cat.png", cat)
    guest.tab("classify")
    assert "token=" not in guest.ask("location.href")
    assert guest.errors == []
    guest.close()


def test_the_page_asks_for_the_token(browser: Any, guarded: str, cat: bytes) -> None:
    """A wrong one is asked for again; the right one is kept for the next visit in this tab."""
    guest = Guest(browser, guarded, ready="#token[open]")
    for value in ("not-the-secret", "a-long-secret"):
        assert not guest.page.is_visible("body[data-ready]")
        guest.page.get_by_label("The one that was given to spit serve --token").fill(value)
        with guest.page.expect_response("**/explorer/samples"):
            guest.page.keyboard.press("Enter")
        guest.page.wait_for_selector("#token[open], body[data-ready]", state="attached")
    guest.page.wait_for_selector("body[data-ready]", state="attached")
    guest.choose("cat.png", cat)
    assert guest.ask("explorer.picture.tokens") > 10
    guest.page.reload()
    guest.page.wait_for_selector("body[data-ready]", state="attached")
    assert not guest.page.is_visible("#token")
    assert all("401" in line for line in guest.errors)  # the browser's own word
    guest.close()


def test_without_the_token_the_page_says_so(browser: Any, guarded: str) -> None:
    guest = Guest(browser, guarded, ready="#token[open]")
    guest.page.keyboard.press("Escape")
    guest.page.wait_for_selector("#notice:not([hidden])")
    assert "token" in guest.page.inner_text("#notice p")
    guest.close()
