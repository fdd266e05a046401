"""The pictures of docs/segmentation.md and docs/attribution.md, from photos that scikit-image ships inside its wheel.

    python benchmarks/figures.py [--model spit_tiny_16] [--output docs]

``segmentation.jpg``: image, tokens, soft map and mask of every colour photograph of people, animals and things in
the wheel, in alphabetical order; no telescope, microscope or chart, and of the stereo pair the left one.
``correspondence.jpg``: both images of the stereo pair (Scharstein et al., GCPR 2014), the only two photos of one
thing there, each once as the source. No photo, option or threshold of these was chosen by its result.
``attribution.jpg``: a right answer and a wrong one, as ``spit explain`` draws them.
"""

import argparse
from pathlib import Path

import numpy as np
import skimage
import torch
from PIL import Image
from provenance import ROOT, print_provenance

import spit
from spit.attribution.drawing import panel_row
from spit.drawing import Tile, draw_panel
from spit.drawing.pictures import as_picture, draw_overlay
from spit.segmentation import Cut
from spit.segmentation.correspondence import all_pairs, scenes

PHOTOS = ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg")
PAIR = ("motorcycle_left.png", "motorcycle_right.png")
EXPLAINED = ("coffee.png", "astronaut.png")
METHODS = ("flow", "prototype", "relevance")
HEIGHT = 370  # of every photo, which a panel neither enlarges nor shrinks
ACROSS = 1500  # pixels of the finished pictures
QUALITY = 82


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="spit_tiny_16", help="a name, a folder or a hub id")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="folder for the pictures")
    args = parser.parse_args()
    predictor = spit.load(args.model, "cpu")
    print_provenance(f"photos in the wheel of scikit-image {skimage.__version__}")
    for name, draw in (("segmentation.jpg", masks), ("correspondence.jpg", pairs), ("attribution.jpg", maps)):
        picture = draw(predictor)
        target = args.output / name
        picture = picture.resize((ACROSS, round(picture.height * ACROSS / picture.width)), Image.Resampling.LANCZOS)
        picture.save(target, quality=QUALITY, optimize=True)
        print(f"{target}: {picture.width} × {picture.height}, {target.stat().st_size / 1000:.0f} kB")


def masks(predictor: spit.Predictor) -> Image.Image:
    """A column for each photo: itself, its tokens, the soft map, and the rest dimmed."""
    columns = []
    for file in PHOTOS:
        image = load(file)
        found = predictor(image).segment()
        mask = found.mask[0].numpy()
        pixels = np.asarray(as_picture(image))
        soft = Image.fromarray(np.rint(found.saliency[0].numpy() * 255).astype(np.uint8)).convert("RGB")
        dimmed = Image.fromarray(np.where(mask[:, :, None], pixels, 255 - (255 - pixels) // 6))
        columns.append([
            Tile(scaled(as_picture(image)), Path(file).stem, f"{image.shape[2]} by {image.shape[1]} pixels"),
            Tile(scaled(draw_overlay(image, found.partition)), f"{int(found.partition.counts[0])} tokens"),
            Tile(scaled(soft), "soft map", "one value a token"),
            Tile(scaled(dimmed), "mask", f"{mask.mean():.0%} of the image")])
    return draw_panel(list(zip(*columns, strict=True)))


def pairs(predictor: spit.Predictor) -> Image.Image:
    """A row for each image: itself, and its colours with each of them as the source."""
    images = [load(file) for file in PAIR]
    names = [Path(file).stem for file in PAIR]
    grid = all_pairs(scenes(predictor(images), Cut()))
    rows = []
    for target, (image, name) in enumerate(zip(images, names, strict=True)):
        tiles = [Tile(as_picture(image), name, f"{image.shape[2]} by {image.shape[1]} pixels")]
        tiles += [Tile(as_picture(grid[source][target].movedim(-1, 0)), "the source's own colours" if source == target
                       else f"colours from {names[source]}") for source in range(len(images))]
        rows.append(tiles)
    return draw_panel(rows)


def maps(predictor: spit.Predictor) -> Image.Image:
    """A row for each photo: itself with its answer, its tokens, and a map for each method."""
    rows = []
    for file in EXPLAINED:
        prediction = predictor(load(file), crop=True)
        [[best]] = prediction.top(1)
        rows.append(panel_row(prediction, {name: prediction.explain(name)[0] for name in METHODS}, Path(file).stem,
                              f"{best.name}, {best.probability:.1%}"))
    return draw_panel(rows)


def scaled(picture: Image.Image) -> Image.Image:
    """Pictures of one height stand in a row."""
    return picture.resize((round(picture.width * HEIGHT / picture.height), HEIGHT), Image.Resampling.LANCZOS)


def load(file: str) -> torch.Tensor:
    """A photo of the wheel, ``(3, H, W)`` uint8; nothing is downloaded."""
    return spit.load_image(Path(skimage.__file__).parent / "data" / file)


if __name__ == "__main__":
    main()
