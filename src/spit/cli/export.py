"""``spit export``: a model as one file for onnxruntime or torch.export."""

from pathlib import Path
from typing import Annotated

import typer

from spit.cli.console import print_json, show, shown, tell, waiting
from spit.cli.options import JsonOnly
from spit.cli.outputs import check_folder
from spit.export.options import Exporting

ENDINGS = {"onnx": (".onnx",), "torch": (".pt2", ".pt", ".pth")}  # of files, by their format
Source = Annotated[str, typer.Argument(metavar="MODEL", help="What --model takes elsewhere.", show_default=False)]
File = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.", show_default=False)]


def export(source: Source, *, exporting: Exporting, output: File, answering: JsonOnly) -> int:
    """Write a model as one file that runs without spit: ONNX, or a program of torch.export.

    The logits are compared with torch's at ten token counts, and the largest difference is printed; beyond the
    tolerance nothing is written. The file carries the tokenizer's options and the class names, so that spit.runtime
    runs it on images without torch. A tokenizer or features of your own are not in the file; a line says so.
    """
    endings = ENDINGS[exporting.format]
    if output.suffix.lower() not in endings:
        raise ValueError(f"expected --output to end in {' or '.join(endings)} for --format {exporting.format}, got "
                         f"{shown(output.name)}; rename it")
    check_folder(output.parent)
    from spit.export.files import export as write
    from spit.registry import load_model

    with waiting("Exporting", patience=0) as say:  # three stages, of which one can take half a minute
        written = write(load_model(source), output, exporting, say)
    if written.warning:
        tell(written.warning)
    if answering.as_json:
        print_json({"model": source, "file": str(written.path), "bytes": written.size, "format": exporting.format,
                    "precision": exporting.precision, "warning": written.warning,
                    "differences": {str(count): value for count, value in written.differences.items()}})
    else:
        show(f"{shown(output)}: {exporting.format}, {exporting.precision}, outputs "
             f"{exporting.outputs}, {written.size / 1e6:.1f} MB\nLogits differ from torch's by at most "
             f"{written.difference:.2g}, at {len(written.differences)} token counts from {min(written.differences)} to "
             f"{max(written.differences)}")
    return 0
