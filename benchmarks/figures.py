"""The pictures of the docs, and the figures of the paper that are drawn from data.

    python benchmarks/figures.py [NAME…] [--model spit_tiny_16] [--output FOLDER] [--as-paper]

Pictures of the docs, all four without a NAME, each on light and on dark, from photos that scikit-image ships inside
its wheel:

- ``demo``: what ``spit demo`` draws.
- ``segmentation``: image, tokens, soft map and mask of every colour photograph of people, animals and things in the
  wheel, in alphabetical order; no telescope, microscope or chart, and of the stereo pair the left one.
- ``correspondence``: both images of the stereo pair (Scharstein et al., GCPR 2014), the only two photos of one thing
  there, each once as the source. No photo, option or threshold of these was chosen by its result.
- ``attribution``: a right answer and a wrong one, as ``spit explain`` draws them.

Figures of the paper; docs/reproduce.md has the commands of the others:

- ``graph``: Fig. 3, one contraction of a small grid of pixels, and the graph of the regions of a photo.
- ``counts``: Fig. B1, the number of regions by size and level beside the number of square patches.
- ``masks``: Fig. 4, ECSSD's images 0257 to 0264 with hits, false alarms and misses; --as-paper cuts as App. E.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import skimage
import torch
from PIL import Image
from provenance import ROOT, arguments, launch, print_provenance
from tables.counts import PAPER, Counts
from tables.protocols import CUT

import spit
from spit.answers import Segment
from spit.attribution.drawing import panel_row
from spit.drawing import Tile, draw_panel
from spit.drawing.panel import THEMES
from spit.drawing.pictures import as_picture, draw_overlay
from spit.drawing.plots import new_figure, png_of, tidy
from spit.evaluation.masks import draw_errors, find_samples, read_pair
from spit.evaluation.runner import Runner
from spit.evaluation.samples import find_images, spread
from spit.kernels.reference.contraction import region_points, similarity
from spit.kernels.reference.superpixels import Graph
from spit.kernels.rules import Rules
from spit.segmentation import TokenCut
from spit.segmentation.correspondence import all_pairs, scenes
from spit.tokenizers.preprocess import superpixel_features

PHOTOS = ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg")
PAIR = ("motorcycle_left.png", "motorcycle_right.png")
EXPLAINED = ("coffee.png", "astronaut.png")
METHODS = ("relevance", "token_rise", "prototype", "flow")
HEIGHT = 370  # of every photo, which a panel neither enlarges nor shrinks
ACROSS = 1500  # pixels of the finished pictures
QUALITY = 82
SHOWN = range(257, 265)  # of ECSSD in Fig. 4
GRID = 5  # pixels a side in Fig. 3
COUNTED = 100  # images of Fig. B1
INKS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a")  # of levels 1 to 4, the paper's Dark2
MARKS = ("s", "o", "^", "*")
Args = argparse.Namespace
Rows = Sequence[Sequence[Tile]]


def main() -> None:
    names = ("demo", *DOCS, *FIGURES)
    parser = arguments(__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; default: the docs' four")
    parser.add_argument("--model", default="spit_tiny_16", help="a name, a folder or a hub id; default: spit_tiny_16")
    parser.add_argument("--output", type=Path, help="folder for the pictures; default: docs/ for the docs' four, "
                                                    "otherwise spit-output")
    parser.add_argument("--as-paper", action="store_true", help="masks: use the paper's cut")
    parser.add_argument("--limit", type=int, default=COUNTED, help=f"counts: images to count; default: {COUNTED}")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in names]
    if unknown:
        parser.error(f"unknown picture {unknown[0]!r}; expected {', '.join(names)}")
    folder = args.output or (Path("spit-output") if args.names else ROOT / "docs")
    folder.mkdir(parents=True, exist_ok=True)
    print_provenance(f"photos in the wheel of scikit-image {skimage.__version__}; masks: ECSSD; counts: imagenet_val1k")
    for name in args.names or ("demo", *DOCS):
        for file, picture in drawn(name, args).items():
            picture.save(folder / file, quality=QUALITY, optimize=True)
            size = (folder / file).stat().st_size / 1000
            print(f"{folder / file}: {picture.width} × {picture.height}, {size:.0f} kB")


def drawn(name: str, args: Args) -> dict[str, Image.Image]:
    """A figure of the paper by its file, or a picture of the docs on light and on dark."""
    if name == "demo":
        return demo(args)
    if name not in DOCS:
        file, draw = FIGURES[name]
        return {file: draw(args)}
    rows, made = DOCS[name](args), {}
    for theme, colors in THEMES.items():
        panel = draw_panel(rows, theme=colors)
        made[f"{name}-{theme}.jpg"] = panel.resize((ACROSS, round(panel.height * ACROSS / panel.width)),
                                                   Image.Resampling.LANCZOS)
    return made


def demo(args: Args) -> dict[str, Image.Image]:
    """The picture of ``spit demo``, on light and on dark."""
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for theme in THEMES:
            command = ["demo", "--theme", theme, "--model", args.model, "--device", "cpu", "-o", folder]
            subprocess.run([sys.executable, "-m", "spit.cli", *command], check=True, stdout=subprocess.DEVNULL)
            with Image.open(Path(folder) / "demo.png") as picture:
                made[f"demo-{theme}.jpg"] = picture.convert("RGB")
    return made


def segmentation(args: Args) -> Rows:
    """A column for each photo: itself, its tokens, the soft map, and the rest dimmed."""
    predictor, columns = spit.load(args.model, "cpu"), []
    for file in PHOTOS:
        image = load(file)
        prediction = predictor(image, crop=False)
        [seen] = prediction.images  # smaller than a large photo
        found = prediction.segment()
        mask = found.mask[0].numpy()
        pixels = np.asarray(as_picture(image))
        soft = Image.fromarray(np.rint(found.saliency[0].numpy() * 255).astype(np.uint8)).convert("RGB")
        dimmed = Image.fromarray(np.where(mask[:, :, None], pixels, 255 - (255 - pixels) // 6))
        columns.append([
            Tile(scaled(as_picture(image)), Path(file).stem, f"{image.shape[2]} by {image.shape[1]} pixels"),
            Tile(scaled(draw_overlay(seen, found.partition)), f"{int(found.partition.counts[0])} tokens"),
            Tile(scaled(soft), "soft map", "one value a token"),
            Tile(scaled(dimmed), "mask", f"{mask.mean():.0%} of the image")])
    return list(zip(*columns, strict=True))


def correspondence(args: Args) -> Rows:
    """A row for each image: itself, and its colours with each of them as the source."""
    images = [load(file) for file in PAIR]
    names = [Path(file).stem for file in PAIR]
    grid = all_pairs(scenes(spit.load(args.model, "cpu")(images), TokenCut()))
    rows = []
    for target, (image, name) in enumerate(zip(images, names, strict=True)):
        tiles = [Tile(as_picture(image), name, f"{image.shape[2]} by {image.shape[1]} pixels")]
        tiles += [Tile(as_picture(grid[source][target].movedim(-1, 0)), "the source's own colours" if source == target
                       else f"colours from {names[source]}") for source in range(len(images))]
        rows.append(tiles)
    return rows


def attribution(args: Args) -> Rows:
    """A row for each photo: itself with its answer, its tokens, and a map for each method."""
    predictor, rows = spit.load(args.model, "cpu"), []
    for file in EXPLAINED:
        prediction = predictor(load(file), crop=True)
        [[best]] = prediction.top(1)
        rows.append(panel_row(prediction, {name: prediction.explain(name)[0] for name in METHODS}, Path(file).stem,
                              f"{best.name}, {best.probability:.1%}"))
    return rows


def masks(args: Args) -> Image.Image:
    """Fig. 4: consecutive images of ECSSD, so that none is chosen by its result."""
    wanted = {f"{number:04d}" for number in SHOWN}
    samples = [sample for sample in find_samples(args.shared / "data" / "ecssd") if sample.name in wanted]
    predictor, tiles = spit.load(args.model, "cpu"), []
    question = CUT if args.as_paper else Segment()
    for sample in samples:
        image, truth = read_pair(sample)
        mask = question.ask(predictor, image).mask[0].numpy()
        iou = (mask & truth.foreground).sum() / (mask | truth.foreground).sum()
        tiles.append(Tile(scaled(draw_errors(image, mask, truth)), f"{sample.name}.jpg", f"IoU {iou:.2f}"))
    across = len(SHOWN) // 2
    how = "cut as App. E does" if args.as_paper else "cut with the defaults"  # the panel's font has no τ
    return draw_panel([tiles[:across], tiles[across:]], f"{predictor.name} on ECSSD: {how}",
                      "yellow: found; orange: found, but not marked; blue: marked, but not found")


def counts(args: Args) -> Image.Image:
    """Fig. B1: mean counts by size and level, the paper's, and the patches of a ViT."""
    data = args.shared / "data" / "imagenet_val1k"
    samples = spread(find_images(data), args.limit)
    rows = Runner().rows(Counts(data, samples, tuple(PAPER), spit.create_tokenizer("published")))
    figure = new_figure(8.5, 4.8, "Number of superpixels beside square patches")
    axes = figure.subplots()
    sides = np.linspace(200, 400, 100)
    for level, (ink, mark) in enumerate(zip(INKS, MARKS, strict=True), start=1):
        own = [row for row in rows if row.level == level]
        sizes = [row.size for row in own]
        axes.plot(sizes, [row.regions.value for row in own], mark, color=ink, markersize=8, label=f"level {level}")
        axes.plot(sizes, [row.paper for row in own], mark, color=ink, markersize=14, fillstyle="none",
                  label=f"level {level}, the paper")
        axes.plot(sides, (sides / 2**level) ** 2, "--", color=ink, linewidth=1, label=f"patches of {2**level}")
    axes.set_yscale("log")
    axes.set_xticks(list(PAPER), [f"{size}²" for size in PAPER])
    axes.set_xlabel("image size")
    axes.set_ylabel("mean number of regions (logarithmic)")
    tidy(axes, f"{len(samples)} images of {data.name}, the tokenizer published; the paper: ImageNet's training images")
    figure.legend(loc="outside right center", frameon=False)
    return picture_of(figure)


def graph(args: Args) -> Image.Image:
    """Fig. 3: the graph of a few pixels with its cosines and choices, the graph after it, and that of a whole photo."""
    photo = as_picture(load("chelsea.png"))
    few = photo.crop((105, 85, 165, 145)).resize((GRID, GRID), Image.Resampling.BOX)  # an eye
    figure = new_figure(16, 6, "Superpixel aggregation: every region joins its most similar neighbour")
    figure.get_layout_engine().set(rect=(0.015, 0.02, 0.97, 0.96))  # a margin
    pixels, joined, whole = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
    level, colors = Graph(features(few), Rules(levels=1)), np.asarray(few).reshape(-1, 3) / 255
    chosen, edges, weights = level.link_pixels(), level.edges, cosines(level)
    parents = level.contract(chosen)
    places = np.stack([np.arange(GRID**2) % GRID, np.arange(GRID**2) // GRID], 1).astype(float)
    names = [f"$v^{{(0)}}_{{{index // GRID + 1}{index % GRID + 1}}}$" for index in range(GRID**2)]
    draw_graph(pixels, places, colors, edges, weights, parents, joins(edges, chosen), names)
    tidy(pixels, "pixels, the cosine of each pair, and the best edge of each pixel")
    means, centres = (average(values, parents) for values in (colors, places))
    names = [f"$v^{{(1)}}_{{{index + 1}}}$" for index in range(len(means))]
    above = torch.unique(level.edges.sort(1).values, dim=0)
    level.edges = above
    draw_graph(joined, centres, means, above, cosines(level), torch.arange(len(means)), np.zeros(len(above), bool),
               names)
    tidy(joined, "after one contraction: the connected components are the regions")
    draw_regions(whole, photo.crop((60, 0, 360, 300)))
    for axes in (pixels, joined):
        axes.set_xlim(-0.6, GRID - 0.4)
        axes.set_ylim(GRID - 0.4, -0.6)
    for axes in (pixels, joined, whole):
        axes.set_aspect("equal", anchor="N")
        axes.set_axis_off()
    return picture_of(figure)


def draw_regions(axes: Any, photo: Image.Image, level: int = 3, side: int = 128) -> None:
    """The graph of one level over the photo; edges within a region of the next level have its colour."""
    picture = photo.resize((side, side), Image.Resampling.LANCZOS)
    graph = Graph(features(picture), Rules())
    labels = graph.contract(graph.link_pixels())
    for _ in range(1, level):
        labels = graph.contract(graph.link_regions(graph.rules.loop_clip)[0])[labels]
    chosen = graph.link_regions(graph.rules.loop_clip)[0]
    edges = torch.unique(graph.edges.sort(1).values, dim=0)
    parents = graph.contract(chosen)
    colors = np.asarray(picture).reshape(-1, 3) / 255
    places = np.stack([np.arange(side**2) % side, np.arange(side**2) // side], 1).astype(float)
    axes.imshow(photo, alpha=0.6, extent=(-0.5, side - 0.5, side - 0.5, -0.5))
    draw_graph(axes, average(places, labels), average(colors, labels), edges, None, parents, joins(edges, chosen), None)
    tidy(axes, f"level {level} of a photo: {len(chosen)} regions, joining into {int(parents.max()) + 1}")


def draw_graph(axes: Any, places: np.ndarray, colors: np.ndarray, edges: torch.Tensor, weights: np.ndarray | None,
               parents: torch.Tensor, chosen: np.ndarray, names: list[str] | None) -> None:
    """Vertices in their colours, ringed by the colour of what they join; edges that were chosen are thick."""
    size, width = (900, 4.0) if names else (22, 1.8)
    inks = [f"C{int(parent) % 10}" for parent in parents]
    for index, (u, v) in enumerate(edges.tolist()):
        style = {"color": inks[u], "linewidth": width} if chosen[index] else {
            "color": "#444", "linewidth": width / 4, "linestyle": (0, (4, 3))}
        axes.plot(*zip(places[u], places[v], strict=True), zorder=1, **style)
        if weights is not None:
            middle, up = (places[u] + places[v]) / 2, abs(places[u][0] - places[v][0]) < 0.2
            axes.annotate(f"{weights[index]:.3f}".replace("0.", "."), middle, (8 if up else 0, 0 if up else 6),
                          textcoords="offset points", rotation=90 if up else 0, ha="center", va="center", fontsize=8,
                          bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})
    axes.scatter(*places.T, s=size, c=colors, edgecolors=inks, linewidths=width / 1.3, zorder=2)
    for place, color, name in zip(places, colors, names or (), strict=False):
        axes.annotate(name, place, ha="center", va="center", fontsize=10, zorder=3,
                      color="black" if color.mean() > 0.5 else "white")


def features(picture: Image.Image) -> torch.Tensor:
    """What superpixels compare, of a picture, ``(C, H, W)``."""
    return superpixel_features(torch.from_numpy(np.array(picture)).movedim(-1, 0)[None], "paper")[0]


def cosines(level: Graph) -> np.ndarray:
    """The weight of each edge."""
    points = region_points(level.sums, level.sizes, level.rules.kind)
    return similarity(level.edges, points, level.sizes, level.rules.kind).numpy()


def joins(edges: torch.Tensor, chosen: torch.Tensor) -> np.ndarray:
    """Which edges one of their ends has chosen."""
    u, v = edges.unbind(1)
    return ((chosen[u] == v) | (chosen[v] == u)).numpy()


def average(values: np.ndarray, parents: torch.Tensor) -> np.ndarray:
    """The mean of the rows that belong to each parent."""
    sizes = np.bincount(parents.numpy())[:, None]
    return np.stack([np.bincount(parents.numpy(), column) for column in values.T], 1) / sizes


def picture_of(figure: Any) -> Image.Image:
    """A matplotlib figure as a picture."""
    import io

    return Image.open(io.BytesIO(png_of(figure))).convert("RGB")


def scaled(picture: Image.Image) -> Image.Image:
    """Pictures of one height stand in a row."""
    return picture.resize((round(picture.width * HEIGHT / picture.height), HEIGHT), Image.Resampling.LANCZOS)


def load(file: str) -> torch.Tensor:
    """A photo of the wheel, ``(3, H, W)`` uint8; nothing is downloaded."""
    return spit.load_image(Path(skimage.__file__).parent / "data" / file)


DOCS: dict[str, Callable[[Args], Rows]] = {
    "segmentation": segmentation, "correspondence": correspondence, "attribution": attribution}
FIGURES: dict[str, tuple[str, Callable[[Args], Image.Image]]] = {
    "graph": ("graph.jpg", graph), "counts": ("counts.png", counts), "masks": ("masks.jpg", masks)}


if __name__ == "__main__":
    launch(main)
