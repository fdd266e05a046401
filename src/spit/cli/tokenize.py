"""``spit tokenize``: images to regions, as pictures, label maps and counts."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from spit.cli.answers import SharingOptions, answer_each, show_files
from spit.cli.console import show, shown, tell_compiling, waiting
from spit.cli.inputs import Document, Input, find_inputs
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.cli.results import Results
from spit.cli.workers import Work
from spit.options import Options, check_choice, option, same

if TYPE_CHECKING:
    from spit.tokenizers import Tokenizer


FILES = ("overlay", "mean", "labels", "colors", "table", "polygons", "levels")


@dataclass(frozen=True)
class LabelFiles(Options):
    """What is written."""

    written: str | None = option(None, f"Kinds of files, with commas between: {', '.join(FILES)} (default: the first "
                                       "four, and with --tiles labels). IMG.json is always written", flag="files",
                                 metavar="KINDS")
    labels: Literal["png", "npz"] = option(
        "png", "Label map as PNG (16-bit grey up to 65,536 regions; beyond, 32-bit colour: label = R + 256 G + 65536 B "
               "+ 16777216 (255 - A)) or as NPZ with the array 'labels'; spit.drawing.read_labels reads both")
    table: bool = option(False, "Also write IMG.csv: a row for each region, as spit.regions makes it")
    polygons: bool = option(False, "Also write IMG.geojson: the regions as polygons in pixels, y downwards, with the "
                                   "table's columns as properties")
    simplify: float = option(0.0, "Pixels that vertices of the polygons may be away from the line that replaces them",
                             least=0)
    levels_strip: bool = option(False, "Also write IMG.levels.png: every level side by side")

    @property
    def kinds(self) -> set[str]:
        """What is written, checked."""
        kinds = {*(FILES[:4] if self.written is None else self.written.split(","))}
        for kind in kinds:
            check_choice("--files", kind, FILES)
        flags = {"table": self.table, "polygons": self.polygons, "levels": self.levels_strip}
        return kinds | {kind for kind, wanted in flags.items() if wanted}


@dataclass(frozen=True)
class Tiling(Options):
    """How images are read that do not fit in memory."""

    tiles: int | None = option(None, "Read and write images tile by tile: pixels along a side, such as 2048, which "
                                     "changes no label. With --regions; TIFF and .npy of any number of bands, integers "
                                     "and floats. Writes IMG.labels.tif or .npy, from 1, 0 where there is no data",
                               least=1)
    axes: str | None = option(None, "With --tiles, a letter for each axis: C for bands, Y, X, and Z for volumes, such "
                                    "as CYX (default: what a TIFF says, if bands are in no doubt)", metavar="LETTERS")
    to: Literal["saturated", "raw", "lab"] | None = option(None, "With --tiles, what is compared, as in "
                                                                 "spit.superpixels; necessary for floats")

    def check_against(self, tokens_of: "TokensOf", files: LabelFiles, inputs: Sequence[Input]) -> None:
        """Refuse options that do not go together, and files that only tiles can read."""
        if self.tiles is None:
            for name in ("axes", "to"):
                if getattr(self, name) is not None:
                    raise ValueError(f"--{name} goes with --tiles; give --tiles 2048 too, or leave it out")
            for item in inputs:
                if item.path.suffix.lower() == ".npy":
                    raise ValueError(f"{shown(item.path)}: arrays are read with --tiles; give --tiles 2048 --regions "
                                     f"{tokens_of.regions or 600}")
        elif tokens_of.regions is None:
            raise ValueError("--tiles needs an exact number of superpixels; give --regions 600")
        elif others := (files.kinds if files.written is not None else files.kinds - {*FILES[:4]}) - {"labels"}:
            raise ValueError(f"--tiles writes labels alone, got --files {','.join(sorted(others))}; leave that or "
                             "--tiles out")


@dataclass(frozen=True)
class TokensOf(Options):
    """Whose tokens."""

    model: tuple[str, ...] = same(Models, "model", ())
    regions: int | None = option(None, "Exactly this many superpixels, or one for each pixel if there are fewer, as "
                                       "spit.superpixels makes them of the image in 8 bits, in place of --model and "
                                       "--tokenizer; --tiles reads more bits", least=1)

    def tokenizer(self, choice: TokenizerChoice) -> "Tokenizer":
        """The tokenizer that was asked for."""
        if self.regions is None:
            return choice.build(Models(self.model).load_one("cpu").model.config if self.model else None)
        others = [*(["model"] if self.model else []), *choice.given]
        if others:
            raise ValueError(f"--regions and --{others[0].replace('_', '-')} exclude each other; leave one out")
        from spit.cli.work.tokenize import ExactSuperpixels

        return ExactSuperpixels(self.regions)


def tokenize(images: Images, tokens_of: TokensOf, tokenizer: TokenizerChoice, files: LabelFiles, tiling: Tiling,
             reading: Reading, sharing: SharingOptions, output: Output, running: Running) -> int:
    """Cut images into tokens, and write pictures and label maps.

    Without --model these are the paper's superpixels, which are not the tokens of spit_tiny_16; --model spit_tiny_16
    takes a model's own tokenizer and options. Options of --tokenizer change them; --max-tokens is an upper bound.
    --regions 300 makes exactly 300 superpixels. The whole image is cut, at its own
    pixels; classify and explain see its central square at the model's size, and so fewer tokens.

    For cat.jpg: cat.overlay.png (boundaries), cat.mean.png (mean colours), cat.labels.png or .npz (the region of every
    pixel), cat.colors.png (the regions in colours, to look at) and cat.json (sizes, options, counts); --files labels
    writes label maps alone. Folders keep their structure. A second run skips images that are done with the same
    settings; --again repeats them. The images you give are never replaced. An image that cannot be read is reported,
    the others go on, and the exit code is 2.

    Images that do not fit in memory: --tiles 2048 --regions 20000. The same command resumes one that was stopped.
    """
    inputs = find_inputs(images, output.output)
    tiling.check_against(tokens_of, files, inputs)
    with waiting("Loading PyTorch"):
        from spit.cli.work.tiles import TiledWork
        from spit.cli.work.tokenize import TokenizeWork
        from spit.tokenizers import TOKENIZERS, NestedTokenizer

    chosen, device = tokens_of.tokenizer(tokenizer), running.place
    name = TOKENIZERS.name_of(chosen) or "superpixels"
    if "levels" in files.kinds and not isinstance(chosen, NestedTokenizer):
        raise ValueError("--levels-strip shows the levels of superpixels; leave --tokenizer and --regions out")
    again = sharing.again or not type(chosen).__module__.startswith("spit.")  # code of your own may have changed
    tiled = {} if tiling.tiles is None else {"tiled": tiling.replace(tiles=1).to_dict()}  # their size changes nothing
    results = Results.of(inputs, output.output, "json", again, verb="tokenize", tokenizer=name,
                         options=chosen.config(), files=files.to_dict(), **tiled)
    work: Work = TokenizeWork(chosen, name, files, reading, device, results)
    if tokens_of.regions is not None and tiling.tiles is not None:
        work = TiledWork(tokens_of.regions, tiling, results)

    def show_all(documents: list[Document]) -> None:
        show_files(documents, output.output, ("regions", "mean pixels"), lambda document: (
            f"{document['regions']:,}", f"{document['region_size']['mean']:,.0f}"))
        show(_source(chosen, name, *tokens_of.model))

    tell_compiling()
    return answer_each(inputs, "Tokenizing", work, show_all, running.as_json, results, sharing.workers,
                       output=str(output.output))


def _source(tokenizer: "Tokenizer", name: str, model: str | None = None) -> str:
    """Which tokens these are, with the options that differ from the defaults."""
    values = ((item, getattr(tokenizer, item.name)) for item in fields(tokenizer))
    changed = ", ".join(f"{item.name}={value}" for item, value in values if value != item.default)
    source = f"from {shown(model)}" if model else "without a model; --model NAME takes those of a model"
    return f"Tokens: {name}{f' with {changed}' if changed else ''}, {source}"
