"""``spit evaluate counts``: how many superpixels at each level (the count law, App. B)."""

from pathlib import Path
from typing import Annotated

import typer

from spit.cli.measuring import Batch, Limit, Output, about_line, check_output, journal, progress_bar, report
from spit.cli.options import AsJson, Device, TokenizerOptions, choose_device

Folder = Annotated[Path, typer.Option("--data", metavar="FOLDER", show_default=False,
                                      help="Images at any depth; no labels are needed.")]
Sizes = Annotated[list[int] | None, typer.Option(
    "--size", min=1, show_default=False,
    help="Side that the central squares are resized to; may be given several times; 224, 256 and 384 unless told.")]


def counts(tokenizer: TokenizerOptions, data: Folder, size: Sizes = None, limit: Limit = None, batch: Batch = None,
           device: Device = "auto", output: Output = None, as_json: AsJson = False) -> int:
    """Count the regions of every level of the hierarchy, beside the paper's table."""
    from spit.data.folders import image_paths
    from spit.evaluation.counts import PAPER, evaluate, sheet
    from spit.tokenizers import SuperpixelTokenizer

    place = choose_device(device)
    check_output(output)
    chosen = tokenizer.build()
    if not isinstance(chosen, SuperpixelTokenizer):
        raise ValueError(f"only superpixels have levels to count, got --tokenizer {chosen.name}")
    paths = image_paths(data)
    paths = [paths[index * len(paths) // limit] for index in range(limit)] if limit and limit < len(paths) else paths
    with progress_bar() as show:
        rows = evaluate(paths, sorted(set(PAPER if size is None else size)), chosen,
                        batch or (256 if place != "cpu" else 16), place, journal(output), show)
    report(sheet(rows, about_line(data, len(paths))), rows, output, as_json, data=str(data), images=len(paths),
           device=place, tokenizer=chosen.config())
    return 0
