"""``spit correspond``: which parts of images are alike, as a grid of pseudo-colours (App. F)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spit.cli.console import print_json, show, shown, waiting
from spit.cli.inputs import find_inputs
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.cli.outputs import real_paths, write_files
from spit.options import Options, option
from spit.segmentation.options import TEMPERATURE, TokenCut

if TYPE_CHECKING:
    from torch import Tensor

MOST = 12  # images of a grid that a person can look at


@dataclass(frozen=True)
class Mixing(Options):
    """How colours travel."""

    softmax_temperature: float = option(TEMPERATURE, "Temperature of the cross-attention's softmax", above=0)


def correspond(images: Images, models: Models, tokenizer: TokenizerChoice, cut: TokenCut, mixing: Mixing,
               reading: Reading, output: Output, running: Running) -> int:
    """Colour similar parts alike across 2 to 12 images, each once as the source; writes correspondences.png.

    The images are at the top, a column each. Below, a row for each source: its own pseudo-colours (three principal
    components of its tokens, its background black), and what cross-attention makes of them on the others. Each part of
    those takes the colours of the most similar parts of the source, and is black if these are its background. The
    captions say how much is coloured. A second run replaces the picture.
    """
    paths = [item.path for item in find_inputs(images)]
    if not 2 <= len(paths) <= MOST:
        raise ValueError(f"expected 2 to {MOST} different images, got {len(paths)}")
    from spit.segmentation.correspondence import all_pairs, colored_share, scenes

    pixels = [reading.load(path) for path in paths]
    predictor = models.load_one(running.device, tokenizer)
    target = output.output / "correspondences.png"
    with waiting("Finding correspondences"):
        made = scenes(predictor(pixels, crop=False, size=models.size), cut)
        temperature = mixing.softmax_temperature
        shares = [[colored_share(source, one, temperature) for one in made] for source in made]
        picture = _draw([path.stem for path in paths], pixels, all_pairs(made, temperature), shares)
        write_files({target: picture}, real_paths(paths))
    if running.as_json:
        print_json({"picture": str(target), "images": [str(path) for path in paths], "temperature": temperature,
                    "colored": [[round(share, 6) for share in row] for row in shares]})
    else:
        show(f"The picture is {shown(target)}", "bold green")
    return 0


def _draw(names: list[str], images: "list[Tensor]", grid: "list[list[Tensor]]", shares: list[list[float]]) -> bytes:
    """The images at the top, and below them, a row for each source, their colours; its own are on the diagonal."""
    from spit.drawing import Tile, draw_panel, encode_png
    from spit.drawing.panel import level
    from spit.drawing.pictures import as_picture

    rows = [[Tile(level(as_picture(image)), name) for image, name in zip(images, names, strict=True)]]
    for source, colors in enumerate(grid):
        details = [f"from {names[source]}, {share:.0%} coloured" for share in shares[source]]
        details[source] = "the source, in its own colours"
        rows.append([Tile(level(as_picture(color.movedim(-1, 0))), name, detail)
                     for color, name, detail in zip(colors, names, details, strict=True)])
    note = "Top: the images. Below: each once as the source. Black parts are most like its background"
    return encode_png(draw_panel(rows, "Feature correspondences", note))
