"""What the verbs of ``spit evaluate`` share: options, the run behind a progress bar, and the report."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spit.cli.console import print_json, show, show_table, shown, tell, waiting
from spit.cli.options import Output, Running
from spit.cli.outputs import check_folder, write_files
from spit.errors import MissingExtra, Stopped
from spit.evaluation.options import Batching
from spit.options import Options, option, same

if TYPE_CHECKING:
    from spit.evaluation.runner import Protocol

DATA = "Folder of images, as described above."
Data = Annotated[Path, typer.Option("--data", metavar="FOLDER", show_default=False, help=DATA)]
JOURNAL = "images.jsonl"


@dataclass(frozen=True)
class Evaluating(Options):
    """Which images are measured, and where the results go."""

    limit: int | None = option(None, "Only this many images, spread over the set", least=1)
    output: Path | None = same(Output, "output", None)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_folder(self.output)


def measure(protocol: "Protocol", evaluating: Evaluating, running: Running,
            batching: Batching = Batching()) -> int:  # noqa: B008
    """Run a protocol, then write and print its report."""
    from spit.drawing.plots import check_matplotlib
    from spit.evaluation.runner import Runner

    output = evaluating.output
    pictures = output is not None
    if output is not None and protocol.plots:
        try:
            check_matplotlib()
        except MissingExtra as error:
            pictures = False
            tell(f"no figures: {error}")
    try:
        with (waiting("Starting", None) as say, Runner(
                None if output is None else output / JOURNAL, say, batching.batch,
                getattr(batching, "precision", None) or "fp32") as runner):
            report = runner.evaluate(protocol, pictures)
    except KeyboardInterrupt:
        raise Stopped(f"stopped; {'with --output ' * (output is None)}the same command resumes what was measured"
                      ) from None
    if runner.resumed:
        print(f"{runner.resumed:,} of {runner.done:,} answers are taken from an earlier run", file=sys.stderr)
    files = report.files()
    if output is not None:
        write_files({output / name: data for name, data in files.items()})
    if running.as_json:
        print_json(report.document())
        return 0
    show(f"{report.title}: {report.head}")
    for sheet in report.sheets:
        show_table(sheet.headings, sheet.cells, sheet.words, sheet.title, sheet.marked)
    show(f"\n{report.notes}")
    if output is not None:
        written = [JOURNAL, *files]
        show(f"{', '.join(written[:-1])} and {written[-1]} are in {shown(output)}")
    return 0
