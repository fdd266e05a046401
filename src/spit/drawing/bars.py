"""Probabilities of classes as bars."""

from collections.abc import Sequence

from PIL import Image, ImageDraw

from spit.drawing.panel import THEMES, Theme, font, text_width

ROOM = 0.62  # of a row's height for its two parts, name and bar
BAR = "#f57d15"  # of the heat map's colours


def draw_bars(guesses: Sequence[tuple[str, float]], width: int, height: int,
              theme: Theme = THEMES["light"]) -> Image.Image:
    """Draw names with their probabilities, a row each, the bars as long as the probability of a full width.

    Shape:
        the picture is width × height.
    """
    picture = Image.new("RGB", (width, height), theme.paper)
    if not guesses:
        return picture
    draw = ImageDraw.Draw(picture)
    step = height / len(guesses)
    size = max(8, min(22, int(step * ROOM / 2)))
    for index, (name, probability) in enumerate(guesses):
        top = step * index + (step - 2.2 * size) / 2
        percent = f"{probability:.0%}"
        while len(name) > 1 and text_width(f"{name}…  {percent}", size) > width:
            name = name[:-1]
        draw.text((0, top), name, theme.ink, font(size))
        draw.text((width - text_width(percent, size), top), percent, theme.detail, font(size))
        below = top + 1.35 * size
        draw.rectangle((0, below, width - 1, below + size * 0.5), theme.track)
        draw.rectangle((0, below, max(1, probability * (width - 1)), below + size * 0.5), BAR)
    return picture
