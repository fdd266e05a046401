"""``spit demo``: one picture that shows what spit does."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from spit.answers.classify import Classify
from spit.cli.classify import show_top
from spit.cli.console import print_json, show, shown, waiting
from spit.cli.options import Models, Output, Reading, Running
from spit.cli.outputs import real_paths, write_files
from spit.options import Options, option
from spit.wording import plural

if TYPE_CHECKING:
    from torch import Tensor

    from spit.drawing.panel import Theme
    from spit.predictor import Prediction
    from spit.segmentation.saliency import Segmentation

SAMPLE = "coffee.png"  # a cup of espresso, as scikit-image ships it
REPEATS = 5
CLASSES = 5  # bars of the picture
NEXT = ("spit serve", "spit segment YOUR_PHOTOS/ -o masks", "spit explain YOUR_PHOTO.jpg -o explained", "spit --help")


@dataclass(frozen=True)
class Sample(Options):
    """What is shown."""

    image: Path | None = option(None, "Your image (default: a sample of scikit-image)", metavar="IMG")
    theme: Literal["light", "dark"] = option("light", "Background of the picture: light or dark")


def demo(sample: Sample, models: Models, reading: Reading, output: Output, running: Running) -> int:
    """Show tokens, classes, an explanation and a mask of one photo in one picture, demo.png.

    The model sees the whole image.
    """
    from spit.bench.photos import sample_photos
    from spit.bench.stages import median_ms
    from spit.drawing.panel import THEMES

    [path] = [sample.image] if sample.image is not None else sample_photos(
        [SAMPLE], "demo", "the sample image of spit demo (--image takes your own)")
    pixels = reading.load(path)
    predictor = models.load_one(running.device)
    predictor.expect_classes()
    with waiting("Looking") as say:
        prediction = predictor(pixels, crop=False)
        tokens = int(prediction.partition.counts[0])
        classes = [one.to_dict() for one in Classify(3).of(prediction)[0]]
        seen = prediction.images[0]
        milliseconds = median_ms(partial(predictor.model.tokenizer, seen), predictor.device, REPEATS)
        say("Explaining")
        heat = prediction.explain()[0]
        say("Segmenting")
        found = prediction.segment()
        foreground = float(found.mask[0].float().mean())
        say("Drawing the picture")
        target = output.output / "demo.png"
        write_files({target: _draw(pixels, prediction, heat, found, THEMES[sample.theme])}, real_paths([path]))
    if running.as_json:
        print_json({"image": str(path), "width": pixels.shape[2], "height": pixels.shape[1], "tokens": tokens,
                    "milliseconds": round(milliseconds, 2), "classes": classes,
                    "foreground": round(foreground, 6), "picture": str(target)})
        return 0
    show(f"{shown(path.name)}, {pixels.shape[2]} × {pixels.shape[1]} pixels: cut into "
         f"{plural(tokens, 'token')} in {milliseconds:.1f} ms (median of {REPEATS}), {foreground:.0%} foreground")
    show_top(classes)
    show(f"The picture is {shown(target)}", "bold green")
    show("Next: " + "; ".join(NEXT))
    return 0


def _draw(pixels: "Tensor", prediction: "Prediction", heat: "Tensor", found: "Segmentation", theme: "Theme") -> bytes:
    """Top: the photo and its tokens. Bottom: which classes, where, and why."""
    from PIL import Image

    from spit.attribution.drawing import draw_map
    from spit.drawing import Tile, draw_mean_colors, draw_overlay, draw_panel, encode_png
    from spit.drawing.bars import draw_bars
    from spit.drawing.panel import LARGEST, fit
    from spit.drawing.pictures import as_picture

    [seen], partition = prediction.images, prediction.partition
    photo = fit(as_picture(pixels))
    thickness = max(1, round(max(seen.shape[1:]) / LARGEST))  # about a pixel once the picture is shrunk
    guesses, name = prediction.top(CLASSES)[0], prediction.top(1)[0][0].name
    cut_out = Image.new("RGB", as_picture(pixels).size, theme.track)  # what the panel is drawn on, a shade darker
    cut_out.paste(as_picture(pixels), mask=Image.fromarray(found.mask[0].cpu().numpy()))
    above = [Tile(photo, "Photo", f"{pixels[0].numel():,} pixels"),
             Tile(draw_overlay(seen, partition, thickness), "Tokens", f"{int(partition.counts[0]):,} superpixels"),
             Tile(draw_mean_colors(seen, partition), "Tokens in their mean colours", "they follow edges in the photo")]
    below = [Tile(draw_bars(guesses, *photo.size, theme), "What is it?", "the likeliest classes"),
             Tile(cut_out, "Where is it?", "the object, from a model trained without masks"),
             Tile(draw_map(pixels, heat), "Why?", f"evidence for “{name}”", ("low", "high"))]
    return encode_png(draw_panel([above, below], theme=theme))
