import io
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageColor

from spit.drawing import (
    Tile,
    draw_labels,
    draw_mask,
    draw_mean_colors,
    draw_overlay,
    draw_panel,
    encode_labels,
    encode_png,
    read_labels,
)
from spit.drawing.bars import draw_bars
from spit.drawing.heat import ANCHORS
from spit.drawing.masks import DARK, LIGHT
from spit.drawing.panel import BAR, GAP, LARGEST, MARGIN, SMALLEST, THEMES, Theme, fit, level
from spit.drawing.pictures import grow
from spit.drawing.plots import files_of, new_figure, png_of, tidy
from spit.errors import ImageError, MissingExtra
from spit.tokenizers import PatchTokenizer


def luma(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("L")).astype(int)


@pytest.mark.parametrize("level", range(0, 256, 5))
def test_the_line_is_seen_on_every_grey(level: int) -> None:
    image = torch.full((3, 32, 32), level, dtype=torch.uint8)
    partition = PatchTokenizer(8)(image)
    drawn = luma(draw_overlay(image, partition))
    [edges] = partition.boundaries().numpy()
    assert np.abs(drawn - level)[edges].min() >= 50
    assert (drawn == level)[~edges].all()


def test_overlay_leaves_its_input_and_all_other_pixels() -> None:
    image = torch.randint(0, 256, (3, 20, 30), dtype=torch.uint8)
    before, partition = image.clone(), PatchTokenizer(10)(image)
    drawn = np.asarray(draw_overlay(image, partition))
    [edges] = partition.boundaries().numpy()
    np.testing.assert_array_equal(drawn[~edges], image.permute(1, 2, 0).numpy()[~edges])
    assert torch.equal(image, before)


@pytest.mark.parametrize("thickness", [1, 2, 3, 4])
def test_lines_are_as_thick_as_asked(thickness: int) -> None:
    image = torch.zeros(3, 20, 40, dtype=torch.uint8)
    drawn = luma(draw_overlay(image, PatchTokenizer(20)(image), thickness))
    assert (drawn[10] > 0).sum() == thickness


def test_mean_colors() -> None:
    image = torch.tensor([[[0, 1, 10, 20]], [[0, 0, 0, 0]], [[255, 254, 7, 7]]], dtype=torch.uint8)
    drawn = np.asarray(draw_mean_colors(image, PatchTokenizer(2)(image)))
    assert drawn[0].tolist() == [[0, 0, 254], [0, 0, 254], [15, 0, 7], [15, 0, 7]], "halves round to even"


def test_grey_and_float_images() -> None:
    grey = torch.randint(0, 256, (1, 8, 8), dtype=torch.uint8)
    partition = PatchTokenizer(4)(grey)
    pictures = [draw_mean_colors(image, partition) for image in (grey, grey.expand(3, -1, -1), grey / 255)]
    assert len({encode_png(picture) for picture in pictures}) == 1


def test_pictures_refuse_what_does_not_belong_together() -> None:
    image = torch.zeros(3, 8, 8, dtype=torch.uint8)
    with pytest.raises(ValueError, match="partition of one image, got 2"):
        draw_overlay(image, PatchTokenizer(4)(image.expand(2, -1, -1, -1)))
    with pytest.raises(ValueError, match="of this image of"):
        draw_overlay(image, PatchTokenizer(4)(torch.zeros(3, 8, 9)))
    with pytest.raises(ValueError, match="expected one image"):
        draw_mean_colors(image[0], PatchTokenizer(4)(image))
    with pytest.raises(ValueError, match="thickness"):
        draw_overlay(image, PatchTokenizer(4)(image), 0)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 65_535, 65_536, 2**24 - 1, 2**24, 2**31 - 1]),
       st.sampled_from(["png", "npz"]))
def test_labels_come_back_exactly(height: int, width: int, largest: int, form: str) -> None:
    labels = torch.from_numpy(np.random.default_rng(largest).integers(0, largest, (height, width), endpoint=True))
    labels[0, 0] = largest
    data, encoding = encode_labels(labels, form)  # type: ignore[arg-type]
    assert encoding == ("npz" if form == "npz" else "grey16" if largest < 65_536 else "rgba32")
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(data)
        found = read_labels(file.name)
    np.testing.assert_array_equal(found, labels.numpy())
    assert found.dtype == np.int32


def test_a_plain_reader_finds_the_labels() -> None:
    labels = torch.tensor([[0, 300], [65_535, 7]])
    with Image.open(io.BytesIO(encode_labels(labels)[0])) as image:
        assert image.mode == "I;16"
        assert np.asarray(image).tolist() == labels.tolist()
    with Image.open(io.BytesIO(encode_labels(labels + 70_000)[0])) as image:
        red, green, blue, alpha = np.moveaxis(np.asarray(image).astype(int), 2, 0)
    assert (red + 256 * green + 65_536 * blue).tolist() == (labels + 70_000).tolist()
    assert (alpha == 255).all()


def test_labels_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shape"):
        encode_labels(torch.zeros(1, 2, 2, dtype=torch.int32))
    with pytest.raises(ValueError, match="labels in"):
        encode_labels(torch.tensor([[-1]]))
    with pytest.raises(ValueError, match="png or npz"):
        encode_labels(torch.tensor([[0]]), "tiff")  # type: ignore[arg-type]
    for data in (b"text", b"PK text", encode_png(Image.new("RGB", (2, 2))), encode_png(Image.new("L", (2, 2)))):
        (tmp_path / "labels.png").write_bytes(data)
        with pytest.raises(ImageError, match=r"labels\.png: expected a label map"):
            read_labels(tmp_path / "labels.png")


@pytest.mark.parametrize("size", [(1, 1), (10, 7), (400, 300), (3000, 20), (20, 3000), (250, 250)])
def test_tiles_are_neither_tiny_nor_huge(size: tuple[int, int]) -> None:
    fitted = fit(Image.new("RGB", size))
    assert min(SMALLEST, 2 * max(size)) <= max(fitted.size) <= LARGEST or size == fitted.size
    assert min(fitted.size) >= 1


@pytest.mark.parametrize("size", [(1, 1), (451, 300), (512, 512), (300, 4000), (48, 40)])
def test_tiles_of_a_row_are_level(size: tuple[int, int]) -> None:
    leveled = level(Image.new("RGB", size))
    assert leveled.height == SMALLEST
    assert leveled.width == max(1, round(SMALLEST * size[0] / size[1]))
    assert fit(leveled) is leveled
    assert level(Image.new("RGB", (3000, 20))).size == (LARGEST, 4)


def test_panels_have_even_margins_and_hold_all_tiles() -> None:
    tiles = [Tile(Image.new("RGB", (400, 300), color), color) for color in ("red", "blue", "green")]
    panel = draw_panel([tiles, tiles[:2]], "Title", "and a note")
    pixels = np.asarray(panel)
    red = np.argwhere((pixels == (255, 0, 0)).all(2))
    assert red[:, 1].min() == MARGIN
    assert len(red) == 2 * 400 * 300
    ink = np.argwhere((pixels != 255).any(2))
    assert panel.width - 1 - ink[:, 1].max() == MARGIN
    assert ink[:, 0].max() < panel.height - MARGIN // 2


def test_an_empty_panel_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        draw_panel([[]])


@pytest.mark.parametrize("level", [0, 60, 128, 200, 255])
def test_a_mask_is_seen_on_every_grey(level: int) -> None:
    image = torch.full((3, 40, 40), level, dtype=torch.uint8)
    mask = np.zeros((40, 40), bool)
    mask[10:30, 10:30] = True
    drawn = np.asarray(draw_mask(image, mask))
    assert (drawn[mask] == level).all()
    assert drawn[9, 20].tolist() == list(LIGHT)
    assert drawn[8, 20].tolist() == list(DARK)
    assert np.abs(luma(draw_mask(image, mask))[9, 20] - luma(draw_mask(image, mask))[8, 20]) > 100
    with pytest.raises(ValueError, match="a mask of this image's"):
        draw_mask(image, mask[1:])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_growing_is_a_maximum_over_squares(height: int, width: int, before: int, after: int, seed: int) -> None:
    mask = np.random.default_rng(seed).random((height, width)) < 0.2
    expected = np.zeros_like(mask)
    for y, x in np.argwhere(mask):
        expected[max(0, y - before) : y + after + 1, max(0, x - before) : x + after + 1] = True
    np.testing.assert_array_equal(grow(mask, before, after), expected)


def test_neighbours_in_a_colored_label_map_differ() -> None:
    image = torch.zeros(3, 64, 64, dtype=torch.uint8)
    drawn = np.asarray(draw_labels(PatchTokenizer(8)(image)))[4::8, 4::8].astype(int)
    assert len(np.unique(drawn.reshape(-1, 3), axis=0)) == 64
    assert np.abs(np.diff(drawn, axis=0)).max(2).min() > 20
    assert np.abs(np.diff(drawn, axis=1)).max(2).min() > 20


def test_a_scale_stands_beside_its_heat_map() -> None:
    picture = Image.new("RGB", (400, 400), "#888888")
    plain, scaled = (np.asarray(draw_panel([[Tile(picture, "Map", "", scale)]])) for scale in (None, ("0.1", "0.9")))
    assert scaled.shape[1] > plain.shape[1]
    bar = scaled[MARGIN : MARGIN + 400, MARGIN + 400 + GAP + BAR // 2]
    assert bar[0].tolist() == list(ANCHORS[-1])
    assert bar[-1].tolist() == list(ANCHORS[0])
    assert (np.diff(bar.astype(int).sum(1)) <= 1).all(), "darker downwards, but for rounding"


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_bars_are_as_long_as_probabilities(theme: Theme) -> None:
    guesses = [("cat", 0.5), ("a name that is far too long for a picture of this width", 0.0)]
    picture = np.asarray(draw_bars(guesses, 200, 100, theme))
    orange = (picture == (245, 125, 21)).all(2).any(0)
    assert orange[:99].all()
    assert not orange[101:].any()
    assert (picture[0, 0] == ImageColor.getrgb(theme.paper)).all()
    assert draw_bars([], 30, 20, theme).size == (30, 20)


def test_a_figure_as_a_file() -> None:
    pytest.importorskip("matplotlib")
    figure = new_figure(2, 1, "title")
    tidy(figure.subplots(), "axes")
    assert png_of(figure).startswith(b"\x89PNG")


def test_a_figure_as_files_for_a_paper() -> None:
    """SVG and PDF beside PNG, the same bytes each time, and in the PDF no fonts of type 3, which journals refuse."""
    pytest.importorskip("matplotlib")

    def made() -> dict[str, bytes]:
        figure = new_figure(2, 1, "title")
        tidy(figure.subplots(), "axes")
        return files_of(figure, "swap")

    files = made()
    assert list(files) == ["swap.png", "swap.svg", "swap.pdf"]
    assert [files[f"swap.{kind}"][:5] for kind in ("png", "svg", "pdf")] == [b"\x89PNG\r", b"<?xml", b"%PDF-"]
    assert b"/Type3" not in files["swap.pdf"]
    assert files == made()


def test_a_figure_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match="plots"):
        new_figure(2, 1, "title")
