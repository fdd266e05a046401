"""The explorer's page: scripting for each move of the pointer, seconds until a picture is shown, and memory.

    python benchmarks/explorer.py [--moves 60] [--rounds 5] [--side 512] [--device cpu]
    python benchmarks/explorer.py --memory 24      # resident memory of the service as pictures are explained

Needs Playwright (extra ``dev``) and a Chromium on the path; ``--memory`` needs neither. The picture is a view of
scikit-image's photos, another one in each round, so that nothing is kept from the last. A first view is over when the
tokens are painted. ``--memory`` asks for what the page asks for: each picture with its labels, tokens and the last
layer's attention, and its relevance map; then the map of the first picture again.
"""

import shutil
import time
from itertools import cycle
from typing import Any

import httpx
import numpy as np
from provenance import arguments, launch, print_provenance

from serve import jpeg, memory, service
from spit.bench.photos import photo_batch, sample_photos
from spit.errors import MissingExtra

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PARTS = ("image.png", "labels.bin", "parents.bin", "regions.bin", "tokens.bin")  # of a picture
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--moves", type=int, default=60, help="of the pointer in a round")
    parser.add_argument("--rounds", type=int, default=5, help="pictures")
    parser.add_argument("--side", type=int, default=512, help="of the pictures")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--memory", type=int, default=0, help="pictures to explain, instead of measuring the page")
    args = parser.parse_args()
    if args.memory:
        print_provenance("scikit-image's photos", seed=0)
        with service("--device", args.device, "--time-limit", "300") as (address, process):
            explained(address, process, args.memory, args.side)
        return
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise MissingExtra("Playwright", "dev", "measuring the page") from error
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise FileNotFoundError(f"expected one of {', '.join(BROWSERS)} on the path; apt-get install chromium")
    print_provenance("scikit-image's photos", seed=0)
    views = photo_batch(sample_photos(), args.rounds + 1, args.side, args.side).movedim(1, -1).numpy()
    pictures = cycle(enumerate(map(jpeg, views)))
    with service("--device", args.device) as (address, _), sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(address)
        page.wait_for_selector("body[data-ready]", state="attached", timeout=120_000)
        first_view(page, *next(pictures))  # to warm up
        seconds, moves = [], []
        for _ in range(args.rounds):
            seconds.append(first_view(page, *next(pictures)))
            moves.append(hover(page, args.moves))
        p95 = [np.percentile(one, 95) for one in moves]
        print("hover p50 ms  p95 ms best p95 first view s   best")
        print(f"{np.median(np.concatenate(moves)):12.1f} {np.median(p95):7.1f} {min(p95):8.1f} "
              f"{np.median(seconds):12.2f} {min(seconds):6.2f}")
        browser.close()


def explained(address: str, process: int, count: int, side: int) -> None:
    """Print the service's memory as different pictures are explained, and the seconds of an explanation."""
    views = photo_batch(sample_photos(), count, side, side).movedim(1, -1).numpy()
    with httpx.Client(base_url=f"{address}/explorer", timeout=120) as client:
        print(f"pictures     MB explanation s\n{0:8d} {memory(process):6.0f}")
        names = []
        for number, view in enumerate(views, start=1):
            files = {"image": ("view.jpg", jpeg(view), "image/jpeg")}
            names.append(client.post("/pictures", files=files).raise_for_status().json()["id"])
            for path in (*PARTS, "attention.bin"):
                client.get(f"/pictures/{names[-1]}/{path}").raise_for_status()
            seconds = explain(client, names[-1])
            if number % 4 == 0 or number == count:
                print(f"{number:8d} {memory(process):6.0f} {seconds:13.2f}", flush=True)
        print(f"   first {memory(process):6.0f} {explain(client, names[0]):13.2f}")


def explain(client: httpx.Client, name: str) -> float:
    """Seconds of a relevance map."""
    started = time.perf_counter()
    client.post(f"/pictures/{name}/explain", json={"method": "relevance"}).raise_for_status()
    return time.perf_counter() - started


def first_view(page: Any, number: int, data: bytes) -> float:
    """Seconds from giving the page a file until its tokens are painted."""
    page.evaluate("() => { explorer.picked = (file) => explorer.open(file); document.title = ''; }")
    started = time.perf_counter()
    page.set_input_files("#file", {"name": f"view{number}.jpg", "mimeType": "image/jpeg", "buffer": data})
    while not page.evaluate(f"() => document.title.startsWith('view{number}')"):
        page.wait_for_timeout(5)
    page.evaluate(PAINTED)
    return time.perf_counter() - started


def hover(page: Any, moves: int) -> list[float]:
    """Milliseconds of scripting for each move over the whole picture, as the page itself measures them."""
    page.wait_for_selector("body:not([data-busy])", state="attached", timeout=120_000)
    box = page.locator(".stage-canvas").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)  # fetches the tokens
    page.wait_for_timeout(500)
    page.evaluate("() => { explorer.stage.costs.length = 0; }")
    for step in range(moves):
        page.mouse.move(box["x"] + box["width"] * (0.05 + 0.9 * step / moves),
                        box["y"] + box["height"] * (0.1 + 0.8 * (step * 7 % moves) / moves))
    page.evaluate(PAINTED)
    found: list[float] = page.evaluate("() => explorer.stage.costs")
    return found


if __name__ == "__main__":
    launch(main)
