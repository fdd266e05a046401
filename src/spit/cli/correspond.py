"""``spit correspond``: which parts of images are alike, as the paper's grid of pseudo-colours (Fig. 3)."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from spit.cli.classify import ModelName
from spit.cli.console import answers, print_json, shown, waiting
from spit.cli.cutting import Cutting, load_model
from spit.cli.inputs import find_inputs
from spit.cli.options import AsJson, Device, Images, Reading, TokenizerOptions, Weights, choose_device
from spit.cli.outputs import write_files

Output = Annotated[Path, typer.Option("--output", "-o", metavar="PNG", help="The picture; replaced where it is.")]
Temperature = Annotated[float, typer.Option("--temperature", help="Of the cross-attention's softmax.")]
MOST = 12  # images of a grid that a person can look at


def correspond(images: Images, cutting: Cutting, tokenizer: TokenizerOptions, reading: Reading,
               output: Output = Path("correspondences.png"), temperature: Temperature = 0.01, weights: Weights = None,
               model: ModelName = None, device: Device = "cpu", as_json: AsJson = False) -> int:
    """Colour like parts alike across 2 to 12 images, every image once as the source.

    Above, the images, a column each; below, a row for each source: its own pseudo-colours (three principal
    components of its tokens, its background black), and what cross-attention makes of them on the others. Each part
    of those takes the colours of the source's parts that it is most like; where these are the source's background it
    is black, as most of a photo that has nothing in common with it. The captions say how much is coloured.
    """
    place = choose_device(device)
    cut = cutting.cut()
    if not temperature > 0:
        raise ValueError(f"expected --temperature above 0, got {temperature}")
    if output.suffix.lower() != ".png" or output.is_dir():
        raise ValueError(f"expected a .png file for --output, got {shown(output)}")
    paths = [item.path for item in find_inputs(images)]
    if not 2 <= len(paths) <= MOST:
        raise ValueError(f"expected 2 to {MOST} different images, got {len(paths)}")
    pixels = [reading.load(path) for path in paths]
    with waiting("Finding correspondences"):
        from spit.segmentation.correspondence import colored_share, pairs_of, scenes

        loaded = load_model(weights, model, tokenizer, place)
        made = scenes(loaded, [image.to(place) for image in pixels], cut)
        shares = [[colored_share(source, target, temperature) for target in made] for source in made]
        write_files({output: _draw(paths, pixels, pairs_of(made, temperature), shares)}, paths)
    document = {"picture": str(output), "images": [str(path) for path in paths], "temperature": temperature,
                "colored": [[round(share, 6) for share in row] for row in shares]}
    if as_json:
        print_json(document)
    else:
        answers().print(Text(f"The picture is {shown(output)}", style="bold green"))
    return 0


def _draw(paths: list[Path], images: list[Any], grid: list[list[Any]], shares: list[list[float]]) -> bytes:
    """The images above, and below them, a row for each source, their colours; its own are on the diagonal."""
    from spit.drawing import Tile, draw_panel, encode_png
    from spit.drawing.panel import level
    from spit.drawing.pictures import as_picture

    names = [path.stem for path in paths]
    rows = [[Tile(level(as_picture(image)), name) for image, name in zip(images, names, strict=True)]]
    for source, colors in enumerate(grid):
        details = [f"from {names[source]}, {share:.0%} coloured" for share in shares[source]]
        details[source] = "the source, in its own colours"
        rows.append([Tile(level(as_picture(color.movedim(-1, 0))), name, detail)
                     for color, name, detail in zip(colors, names, details, strict=True)])
    note = "Above, the images; below, each once as the source. Black is what is most like its background"
    return encode_png(draw_panel(rows, "Feature correspondences", note))
