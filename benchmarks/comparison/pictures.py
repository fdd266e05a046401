"""Twelve kinds of images that are no photos, made with a seed or from the samples in scikit-image's wheel."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from skimage import data
from skimage.filters import gaussian
from skimage.transform import resize

Picture = NDArray[np.uint8] | NDArray[np.uint16]
SEED = 0
HEIGHT, WIDTH = 256, 384
WORDS = "Pairs of regions that are each other's cheapest neighbour merge, all such pairs at once. "


def photo(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """A photo in a shape ``(H, W)`` or ``(H, W, C)``; with other than three bands, its green and rolls of it."""
    colors = resize(data.astronaut(), (*shape[:2], 3), order=1, anti_aliasing=True)
    colors = _bytes(255 * colors + _draws().normal(0, 2, colors.shape))
    if len(shape) == 2:
        return colors[..., 1]
    return colors if shape[2] == 3 else np.stack([np.roll(colors[..., 1], 3 * c, 1) for c in range(shape[2])], -1)


def flat() -> dict[str, Picture]:
    grey = np.full((HEIGHT, WIDTH), 128, np.uint8)
    jpeg = (grey + _draws().integers(-1, 2, grey.shape)).astype(np.uint8)
    letterbox = photo((HEIGHT, WIDTH, 3))
    letterbox[: HEIGHT // 5] = letterbox[-HEIGHT // 5 :] = 0
    return {"black": np.zeros((HEIGHT, WIDTH), np.uint8), "grey ±1": jpeg, "letterbox": letterbox}


def quadrants() -> dict[str, Picture]:
    """The image of scikit-image's first test of ``slic``, larger; the same without noise; a board of 24 fields."""
    y, x = _grid()
    clean = np.zeros((HEIGHT, WIDTH, 3))
    clean[..., 0], clean[..., 1] = (y < HEIGHT // 2) & (x < WIDTH // 2), (y >= HEIGHT // 2) & (x < WIDTH // 2)
    clean[..., 2] = (y >= HEIGHT // 2) & (x >= WIDTH // 2)
    board = _draws().integers(30, 226, (4, 6, 3))[y // 64, x // 64]
    noise = _draws().normal(size=clean.shape)
    return {"clean": _bytes(255 * clean), "noisy": _bytes(255 * (clean + 0.01 * noise)),
            "board, noise 10": _bytes(board + 10 * noise)}


def disk() -> dict[str, Picture]:
    y, x = _grid()
    away = np.hypot(y - 120, x - 170)
    soft = 255 - 200 * np.clip(80.5 - away, 0, 1)
    rings = np.where(away % 40 < 20, 40, 200)
    return {"hard": _bytes(np.where(away < 80, 40, 255)), "soft edge": _bytes(soft), "rings": _bytes(rings)}


def screenshots() -> dict[str, Picture]:
    light = _page("RGB", (WIDTH, HEIGHT), (255, 255, 255), (30, 30, 30), 11, left=76, top=30)
    draw = ImageDraw.Draw(light)
    draw.rectangle((0, 0, WIDTH, 20), (40, 60, 90))
    draw.rectangle((0, 21, 64, HEIGHT), (240, 240, 240))
    for k in range(6):
        draw.rounded_rectangle((6, 30 + 24 * k, 58, 46 + 24 * k), 4, (60, 130, 220) if k == 1 else (220, 220, 225))
    dark = _page("RGB", (WIDTH, HEIGHT), (30, 30, 30), (212, 212, 212), 10, left=40, top=6)
    ImageDraw.Draw(dark).rectangle((0, 0, 28, HEIGHT), (51, 51, 51))
    viewer = np.asarray(light).copy()
    viewer[40:200, 100:340] = photo((160, 240, 3))
    return {"light": np.asarray(light), "dark": np.asarray(dark), "with a photo": viewer}


def text() -> dict[str, Picture]:
    made = np.asarray(_page("L", (WIDTH, HEIGHT), 255, 0, 12, left=16, top=12))
    return {"scan": data.page(), "uneven light": data.text(), "made": made}


def charts() -> dict[str, Picture]:
    colors = [(31, 119, 180), (255, 127, 14), (44, 160, 44), (214, 39, 40), (148, 103, 189)]
    bars, lines, pie = (Image.new("RGB", (WIDTH, HEIGHT), "white") for _ in range(3))
    heights = _draws().integers(30, 200, 15)
    draw = ImageDraw.Draw(bars)
    for k, height in enumerate(heights):
        draw.rectangle((40 + 22 * k, 230 - height, 54 + 22 * k, 230), colors[k % 5])
    _axes(draw)
    draw = ImageDraw.Draw(lines)
    for color in colors:
        ys = 130 + np.cumsum(_draws(color[0]).normal(0, 9, 34))
        draw.line([(40 + 10 * k, float(y)) for k, y in enumerate(ys)], color, 2, "curve")
    _axes(draw)
    draw = ImageDraw.Draw(pie)
    ends = np.concatenate([[0], np.cumsum(heights[:5]) / heights[:5].sum() * 360])
    for color, start, end in zip(colors, ends, ends[1:], strict=False):
        draw.pieslice((90, 26, 294, 230), float(start), float(end), color, "white")
    return {"bars": np.asarray(bars), "lines": np.asarray(lines), "pie": np.asarray(pie)}


def cells() -> dict[str, Picture]:
    """A photomicrograph; made fluorescent nuclei on black; a field of galaxies."""
    draws, (y, x) = _draws(), _grid()
    light = np.zeros((HEIGHT, WIDTH))
    for row, column, height, width, value in draws.uniform((0, 0, 6, 6, 60), (HEIGHT, WIDTH, 14, 14, 200), (40, 5)):
        light = np.maximum(light, value * ((((y - row) / height) ** 2 + ((x - column) / width) ** 2) < 1))
    nuclei = draws.poisson(gaussian(light, 1.5, preserve_range=True) + 3)
    return {"cell": data.cell()[100:500, 80:480], "nuclei": _bytes(nuclei),
            "galaxies": data.hubble_deep_field()[:300, :400]}


def xrays() -> dict[str, Picture]:
    """The Shepp–Logan phantom, noisy; a made chest of 12 bits in uint16; a fundus lesion, twice as large."""
    draws, (y, x) = _draws(), _grid()
    phantom = 255 * data.shepp_logan_phantom() + draws.normal(0, 6, (400, 400))
    body = ((y - 140) / 150) ** 2 + ((x - 192) / 165) ** 2 < 1
    lungs = ((y - 140) / 95) ** 2 + ((np.abs(x - 192) - 75) / 52) ** 2 < 1
    ribs = (((y - 0.25 * np.abs(x - 192)) % 36) < 9) & body
    chest = gaussian(170.0 * body - 95 * lungs + 25 * ribs + 40 * (np.abs(x - 192) < 16), 3, preserve_range=True)
    lesion = resize(data.microaneurysms(), (204, 204), order=1, preserve_range=True)
    chest = np.clip(16 * (chest + draws.normal(0, 5, chest.shape)), 0, 4095).astype(np.uint16)
    return {"phantom": _bytes(phantom), "chest, 12 bits": chest, "lesion": _bytes(lesion)}


def bands() -> dict[str, Picture]:
    """Fields with a spectrum each, with noise: 4, 12 and 60 bands."""
    return {f"{count} bands": field_bands(HEIGHT, WIDTH, count) for count in (4, 12, 60)}


def field_bands(height: int, width: int, count: int) -> NDArray[np.uint8]:
    """Fields with a spectrum each, a river, and noise, like a satellite's."""
    draws, (y, x) = _draws(), _grid(height, width)
    centres = draws.uniform((0, 0), (height, width), (90, 2))
    fields = ((y[..., None] - centres[:, 0]) ** 2 + (x[..., None] - centres[:, 1]) ** 2).argmin(-1)
    fields[np.abs(y - height / 2 - 0.2 * height * np.sin(6 * x / width)) < 5] = 0
    spectra = gaussian(draws.uniform(0, 255, (90, count)), (0, count / 8), preserve_range=True)
    return _bytes(spectra[fields] + draws.normal(0, 6, (height, width, count)))


def noise() -> dict[str, Picture]:
    draws = _draws()
    pepper = np.where(draws.random((HEIGHT, WIDTH)) < 0.05, 255 * draws.integers(0, 2, (HEIGHT, WIDTH)), 100)
    return {"uniform RGB": draws.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8), "salt and pepper": _bytes(pepper),
            "normal": _bytes(draws.normal(128, 20, (HEIGHT, WIDTH)))}


def gradients() -> dict[str, Picture]:
    y, x = _grid()
    four = np.stack([255 * x / WIDTH, 255 * y / HEIGHT, 128 + 0 * x], -1)
    return {"linear": _bytes(255 * x / WIDTH), "four colours": _bytes(four), "wheel": data.colorwheel()[..., :3]}


def stripes() -> dict[str, Picture]:
    y, x = _grid()
    return {"upright": _bytes(255 * (x // 4 % 2)), "wide, slanted": _bytes(60 + 130 * ((x + y) // 24 % 2)),
            "sine": _bytes(128 + 100 * np.sin(x / 5 + y / 9))}


KINDS: dict[str, Callable[[], dict[str, Picture]]] = {
    "flat": flat, "quadrants": quadrants, "disk": disk, "screenshot": screenshots, "text": text, "chart": charts,
    "cells": cells, "X-ray": xrays, "bands": bands, "noise": noise, "gradient": gradients, "stripes": stripes}


def _page(mode: str, size: tuple[int, int], ground: Any, ink: Any, points: int, left: int, top: int) -> Image.Image:
    """Lines of words of different beginnings."""
    page = Image.new(mode, size, ground)
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(points)
    for k, y in enumerate(range(top, size[1] - points, points + 4)):
        draw.text((left + 12 * (k % 3 == 1), y), (2 * WORDS)[7 * k % len(WORDS) :][: 52 - 9 * (k % 5)], ink, font)
    return page


def _axes(draw: ImageDraw.ImageDraw) -> None:
    draw.line([(36, 20), (36, 231), (380, 231)], (0, 0, 0), 1)
    for k in range(5):
        draw.text((8, 222 - 48 * k), str(20 * k), (0, 0, 0), ImageFont.load_default(10))


def _grid(height: int = HEIGHT, width: int = WIDTH) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    y, x = np.mgrid[:height, :width]
    return y, x


def _bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    return np.clip(np.rint(values.astype(float)), 0, 255).astype(np.uint8)


def _draws(seed: int = SEED) -> np.random.Generator:
    return np.random.default_rng(seed)
