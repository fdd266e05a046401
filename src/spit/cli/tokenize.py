"""``spit tokenize``: images to regions, as pictures, label maps and counts."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from spit.cli.answers import SharingOptions, answer_each, show_files
from spit.cli.console import show, shown, tell_compiling, waiting
from spit.cli.inputs import Document, find_inputs
from spit.cli.options import Images, Models, Output, Reading, Running, TokenizerChoice
from spit.cli.results import Results
from spit.options import Options, option, same

if TYPE_CHECKING:
    from spit.tokenizers import Tokenizer


@dataclass(frozen=True)
class LabelFiles(Options):
    """What is written beside the pictures."""

    labels: Literal["png", "npz"] = option(
        "png", "Label map as PNG (16-bit grey up to 65,536 regions; beyond, 32-bit colour: label = R + 256 G + 65536 B "
               "+ 16777216 (255 - A)) or as NPZ with the array 'labels'; spit.drawing.read_labels reads both")
    table: bool = option(False, "Also write IMG.csv: a row for each region, as spit.regions makes it")
    polygons: bool = option(False, "Also write IMG.geojson: the regions as polygons in pixels, y downwards, with the "
                                   "table's columns as properties")
    simplify: float = option(0.0, "Pixels that vertices of the polygons may be away from the line that replaces them",
                             least=0)
    levels_strip: bool = option(False, "Also write IMG.levels.png: every level side by side")


@dataclass(frozen=True)
class TokensOf(Options):
    """Whose tokens."""

    model: tuple[str, ...] = same(Models, "model", ())
    regions: int | None = option(None, "Exactly this many superpixels, or one for each pixel if there are fewer, as "
                                       "spit.superpixels makes them, in place of --model and --tokenizer", least=1)

    def tokenizer(self, choice: TokenizerChoice) -> "Tokenizer":
        """The tokenizer that was asked for."""
        if self.regions is None:
            return choice.build(Models(self.model).load_one("cpu").model.config if self.model else None)
        others = [*(["model"] if self.model else []), *choice.given]
        if others:
            raise ValueError(f"--regions and --{others[0].replace('_', '-')} exclude each other; leave one out")
        from spit.cli.work.tokenize import ExactSuperpixels

        return ExactSuperpixels(self.regions)


def tokenize(images: Images, tokens_of: TokensOf, tokenizer: TokenizerChoice, files: LabelFiles, reading: Reading,
             sharing: SharingOptions, output: Output, running: Running) -> int:
    """Cut images into tokens, and write pictures and label maps.

    Without --model these are the paper's superpixels, which are not the tokens of spit_tiny_16; --model spit_tiny_16
    takes a model's own tokenizer and options. Options of --tokenizer change them; --max-tokens is an upper bound.
    --regions 300 makes exactly 300 superpixels. The whole image is cut, at its own
    pixels; classify and explain see its central square at the model's size, and so fewer tokens.

    For cat.jpg: cat.overlay.png (boundaries), cat.mean.png (mean colours), cat.labels.png or .npz (the region of every
    pixel), cat.colors.png (the regions in colours, to look at) and cat.json (sizes, options, counts). Folders keep
    their structure. A second run skips images that are done with the same settings; --again repeats them. The images
    you give are never replaced. An image that cannot be read is reported, the others go on, and the exit code is 2.
    """
    inputs = find_inputs(images, output.output)
    with waiting("Loading PyTorch"):
        from spit.cli.work.tokenize import TokenizeWork
        from spit.tokenizers import TOKENIZERS, NestedTokenizer

    chosen, device = tokens_of.tokenizer(tokenizer), running.place
    name = TOKENIZERS.name_of(chosen) or "superpixels"
    if files.levels_strip and not isinstance(chosen, NestedTokenizer):
        raise ValueError("--levels-strip shows the levels of superpixels; leave --tokenizer and --regions out")
    again = sharing.again or not type(chosen).__module__.startswith("spit.")  # code of your own may have changed
    results = Results.of(inputs, output.output, "json", again, verb="tokenize", tokenizer=name,
                         options=chosen.config(), files=files.to_dict())
    work = TokenizeWork(chosen, name, files, reading, device, results)

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
