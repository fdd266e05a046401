"""A grid of captioned pictures, on white or dark."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import ceil

from PIL import Image, ImageDraw, ImageFont

from spit.drawing.heat import draw_scale

SMALLEST, LARGEST = 360, 560  # the longer side of a tile in pixels
MARGIN = 36
BAR, GAP = 16, 8  # width of a heat map's scale, and the space around it
OWN_SCALE = "compare within this map"  # along the scale of a heat map
TITLE, NOTE, CAPTION, DETAIL = 40, 22, 24, 19  # sizes of type


@dataclass(frozen=True)
class Theme:
    """Colours of a panel: its paper, ink, details, and the track of a bar."""

    paper: str
    ink: str
    detail: str
    track: str


THEMES = {"light": Theme("#ffffff", "#16181d", "#6a7079", "#eceef1"),
          "dark": Theme("#16181d", "#f2f4f7", "#9aa1ac", "#2c3038")}


@dataclass(frozen=True)
class Tile:
    """A picture with a caption, and a line of detail below it in grey.

    A heat map has the numbers of its lowest and its highest colour as ``scale``, drawn beside it; a label says that
    values compare within one map only.
    """

    picture: Image.Image
    caption: str
    detail: str = ""
    scale: tuple[str, str] | None = None


def draw_panel(rows: Sequence[Sequence[Tile]], title: str = "", note: str = "",
               theme: Theme = THEMES["light"]) -> Image.Image:
    """Draw tiles in a grid with even margins.

    A column is as wide as its widest tile or caption, a row as high as its highest tile. Lower tiles are aligned at the
    bottom. Small pictures are enlarged by a whole factor, large ones shrunk.
    """
    if not rows or not all(rows):
        raise ValueError("expected at least one row, and one tile in each, got none")
    grid = [[replace(tile, picture=fit(tile.picture)) for tile in row] for row in rows]
    widths = [max(_tile_width(tile) for tile in column if tile is not None) for column in zip_longest(*grid)]
    heights = [max(tile.picture.height for tile in row) for row in grid]
    head = [line for line in ((title, TITLE, theme.ink), (note, NOTE, theme.detail)) if line[0]]
    foot = CAPTION + DETAIL + 26  # below each tile
    gap = MARGIN // 2  # between the head and the rows, and below each row's captions
    width = MARGIN + max([sum(widths) + MARGIN * len(widths)] + [text_width(*line[:2]) + MARGIN for line in head])
    height = MARGIN + sum(size + 14 for _, size, _ in head) + gap * bool(head) + sum(heights) + (foot + gap) * len(grid)
    canvas = Image.new("RGB", (width, height), theme.paper)
    draw = ImageDraw.Draw(canvas)
    top = MARGIN
    for text, size, ink in head:
        draw.text((MARGIN, top), text, ink, font(size))
        top += size + 14
    top += gap * bool(head)
    for row, row_height in zip(grid, heights, strict=True):
        left = MARGIN
        for tile, column in zip(row, widths, strict=False):
            upper = top + row_height - tile.picture.height
            canvas.paste(tile.picture, (left, upper))
            if tile.scale is not None:
                _draw_scale(canvas, tile, left + tile.picture.width + GAP, upper, theme)
            draw.text((left, top + row_height + 8), tile.caption, theme.ink, font(CAPTION))
            draw.text((left, top + row_height + CAPTION + 16), tile.detail, theme.detail, font(DETAIL))
            left += column + MARGIN
        top += row_height + foot + gap
    return canvas


def fit(picture: Image.Image) -> Image.Image:
    """Bring a picture's longer side between two bounds: enlarge it by a whole factor, or shrink it with Lanczos."""
    longer = max(picture.size)
    if longer > LARGEST:
        return _scaled(picture, LARGEST / longer)
    factor = min(ceil(SMALLEST / longer), LARGEST // longer)
    return _scaled(picture, factor, Image.Resampling.NEAREST) if factor > 1 else picture


def level(picture: Image.Image) -> Image.Image:
    """Resize a picture to the height of a tile, or to its largest width if it would be wider."""
    return _scaled(picture, min(SMALLEST / picture.height, LARGEST / picture.width))


def _scaled(picture: Image.Image, scale: float, method: Image.Resampling = Image.Resampling.LANCZOS) -> Image.Image:
    width, height = (max(1, round(side * scale)) for side in picture.size)
    return picture.resize((width, height), method)


def _draw_scale(canvas: Image.Image, tile: Tile, left: int, top: int, theme: Theme) -> None:
    """The bar of a heat map's colours, with the numbers at its ends and, if there is room, a label between them."""
    height = tile.picture.height
    canvas.paste(draw_scale(BAR, height), (left, top))
    draw = ImageDraw.Draw(canvas)
    for text, place, anchor in zip(tile.scale or (), (height, 0), ("ls", "lt"), strict=True):
        draw.text((left + BAR + GAP, top + place), text, theme.detail, font(DETAIL), anchor=anchor)
    length = text_width(OWN_SCALE, DETAIL)
    if length <= height - 4 * DETAIL:
        label = Image.new("RGB", (length, DETAIL + GAP), theme.paper)
        ImageDraw.Draw(label).text((0, 0), OWN_SCALE, theme.detail, font(DETAIL))
        canvas.paste(label.transpose(Image.Transpose.ROTATE_90), (left + BAR + GAP, top + (height - length) // 2))


def _scale_width(tile: Tile) -> int:
    if tile.scale is None:
        return 0
    return BAR + 2 * GAP + max(DETAIL + GAP, *(text_width(text, DETAIL) for text in tile.scale))


def _tile_width(tile: Tile) -> int:
    return max(tile.picture.width + _scale_width(tile), text_width(tile.caption, CAPTION),
               text_width(tile.detail, DETAIL))


def text_width(text: str, size: int) -> int:
    return ceil(font(size).getlength(text))


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)
