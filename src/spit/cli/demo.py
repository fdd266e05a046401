"""``spit demo``: one picture that shows what spit does."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from spit.cli.classify import show_top, top_json
from spit.cli.console import print_json, show, shown, waiting
from spit.cli.options import Models, Output, Reading, Running
from spit.cli.outputs import real_paths, write_files
from spit.options import Options, option
from spit.wording import plural

SAMPLE = "coffee.png"  # a cup of espresso, as scikit-image ships it
REPEATS = 5
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
    from spit.cli.work.demo import draw
    from spit.drawing.panel import THEMES

    [path] = [sample.image] if sample.image is not None else sample_photos(
        [SAMPLE], "demo", "the sample image of spit demo (--image takes your own)")
    pixels = reading.load(path)
    predictor = models.load_one(running.device)
    predictor.expect_classes()
    with waiting("Looking") as say:
        prediction = predictor(pixels, crop=False)
        tokens = int(prediction.partition.counts[0])
        classes = top_json(prediction, 3)
        seen = prediction.images[0]
        milliseconds = median_ms(partial(predictor.model.tokenizer, seen), predictor.device, REPEATS)
        say("Explaining")
        heat = prediction.explain()[0]
        say("Segmenting")
        found = prediction.segment()
        foreground = float(found.mask[0].float().mean())
        say("Drawing the picture")
        target = output.output / "demo.png"
        write_files({target: draw(pixels, prediction, heat, found, THEMES[sample.theme])}, real_paths([path]))
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
