"""The explorer's page in Chromium: scripting for each move of the pointer, and seconds until a picture is shown.

    python benchmarks/explorer.py [--moves 60] [--rounds 5] [--side 512] [--device cpu]

Needs Playwright (extra ``dev``) and a Chromium on the path. The picture is a view of scikit-image's photos, another one
in each round, so that nothing is kept from the last. A first view is over when the tokens are painted.
"""

import shutil
import time
from itertools import cycle
from typing import Any

import numpy as np
from provenance import arguments, launch, print_provenance

from serve import jpeg, service
from spit.bench.photos import photo_batch, sample_photos
from spit.errors import MissingExtra

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--moves", type=int, default=60, help="of the pointer in a round")
    parser.add_argument("--rounds", type=int, default=5, help="pictures for each renderer")
    parser.add_argument("--side", type=int, default=512, help="of the pictures")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    args = parser.parse_args()
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
        print("renderer  hover p50 ms  p95 ms best p95 first view s   best")
        for renderer in ("webgl", "2d"):
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            page.goto(f"{address}/?renderer={renderer}")
            page.wait_for_selector("body[data-ready]", state="attached", timeout=120_000)
            first_view(page, *next(pictures))  # compiles shaders
            seconds, moves = [], []
            for _ in range(args.rounds):
                seconds.append(first_view(page, *next(pictures)))
                moves.append(hover(page, args.moves))
            p95 = [np.percentile(one, 95) for one in moves]
            print(f"{renderer:9s} {np.median(np.concatenate(moves)):12.1f} {np.median(p95):7.1f} {min(p95):8.1f} "
                  f"{np.median(seconds):12.2f} {min(seconds):6.2f}", flush=True)
            page.close()
        browser.close()


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
