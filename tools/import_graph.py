"""Draw which part of spit imports which, from the sources: docs/imports.svg.

    python tools/import_graph.py            # writes docs/imports.svg
    python tools/import_graph.py --check    # exit code 1 if the file is out of date

Rows are the layers of tests/test_architecture.py, which also holds that imports go down only.
"""

import argparse
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from test_architecture import LAYERS, RANK, SOURCE, imports, modules, part  # noqa: E402

TARGET = ROOT / "docs" / "imports.svg"
WIDTH, MARGIN = 1080, 16
HEIGHT, GAP, ROW = 34, 12, 104  # of a box, between boxes, and from layer to layer


def graph() -> dict[str, set[str]]:
    """The parts that each part imports, inside functions too."""
    found: dict[str, set[str]] = {name: set() for names in LAYERS for name in names}
    for path in modules():
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for name, _ in imports(path):
            other = part(name)
            if own in found and other in found and other != own:
                found[own].add(other)
    return found


def draw(found: dict[str, set[str]]) -> str:
    """The graph as SVG, the commands above and what needs nothing below."""
    places: dict[str, tuple[float, float, float]] = {}  # centre, top, width
    for rank, names in enumerate(LAYERS):
        widths = [18 + 8.2 * len(name) for name in names]
        left = (WIDTH - sum(widths) - GAP * (len(names) - 1)) / 2
        for name, width in zip(names, widths, strict=True):
            places[name] = (left + width / 2, MARGIN + ROW * (len(LAYERS) - 1 - rank), width)
            left += width + GAP
    lines = []
    for name, others in found.items():
        for other in sorted(others):
            if RANK[other] == RANK[name]:
                continue  # neighbours of a layer
            (x, y, _), (u, v, _) = places[name], places[other]
            y += HEIGHT
            bend = (v - y) / 2
            lines.append(f'<path d="M{x:.0f} {y:.0f}C{x:.0f} {y + bend:.0f} {u:.0f} {v - bend:.0f} {u:.0f} {v:.0f}">'
                         f"<title>{name} → {other}</title></path>")
    boxes = [f'<rect x="{x - width / 2:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HEIGHT}" rx="6"/>'
             f'<text x="{x:.0f}" y="{y + 22:.0f}">{escape(name)}</text>' for name, (x, y, width) in places.items()]
    height = 2 * MARGIN + ROW * (len(LAYERS) - 1) + HEIGHT
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        'font-size="14">', f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        '<g fill="none" stroke="#4051b5" stroke-opacity="0.3" stroke-width="1.2">', *lines, "</g>",
        '<g fill="#eef0fa" stroke="#4051b5" text-anchor="middle">',
        *(box.replace("<text", '<text fill="#16181d" stroke="none"') for box in boxes), "</g>", "</svg>", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the file is out of date")
    drawn = draw(graph())
    if parser.parse_args().check:
        if not TARGET.is_file() or TARGET.read_text() != drawn:
            print(f"{TARGET} is out of date; run python tools/import_graph.py")
            return 1
        return 0
    TARGET.write_text(drawn)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
