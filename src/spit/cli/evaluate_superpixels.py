"""``spit evaluate superpixels``: methods side by side at equal counts of regions."""

import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spit.cli.console import answers, print_json, shown
from spit.cli.measuring import Limit, check_output, journal, progress_bar
from spit.cli.options import AsJson
from spit.cli.outputs import write_files
from spit.tokens import plural

if TYPE_CHECKING:
    from spit.evaluation.superpixels import Row

Data = Annotated[Path, typer.Option(
    "--data", metavar="FOLDER", show_default=False,
    help="BSDS500 (images/ and groundTruth/), or images/ and labels/ with label maps of the same names: .png (a colour "
         "counts as one label), .npy, .npz or .mat, several for an image as NAME_1.png, NAME_2.png, …")]
Methods = Annotated[list[str] | None, typer.Option(
    "--method", metavar="NAME", show_default=False,
    help="spit, spit-unrefined, spit-paper, seeds, slic, opencv-slic, slico, mslic, lsc, watershed, felzenszwalb or "
         "quickshift; may be given several times; all unless told.")]
Counts = Annotated[list[int] | None, typer.Option(
    "--count", metavar="N", min=1, show_default=False,
    help="Regions that each method is set to give, on average; may be given several times, for curves; 600 unless "
         "told.")]
Workers = Annotated[int, typer.Option("--workers", min=0, help="Processes, one thread each; 0 works in this one.")]
Output = Annotated[Path | None, typer.Option(
    "--output", "-o", metavar="FOLDER", show_default=False,
    help="Write results.json, results.md, curves.png and images.jsonl there. A run that was stopped goes on from "
         "images.jsonl.")]


def superpixels(data: Data, method: Methods = None, count: Counts = None, limit: Limit = None, workers: Workers = 2,
                output: Output = None, as_json: AsJson = False) -> int:
    """Compare superpixel methods at equal counts of regions against human segmentations.

    Explained variation, achievable accuracy, undersegmentation error, boundary recall, compactness,
    connectivity and time. Each method's one parameter is searched for until its mean count of 4-connected
    regions is the one wanted.
    """
    from spit.evaluation.superpixels import choose_methods, evaluate, find_samples

    methods = choose_methods(method or [])
    counts = sorted(set(count or [600]))
    samples = find_samples(data, limit)
    if output is not None:
        check_output(output)
        _need_matplotlib()
    kept = journal(output)
    if kept is not None and kept.exists():
        Console(stderr=True).print(Text(f"Going on from {shown(kept)}; remove it to measure anew"))
    with progress_bar() as report:
        rows = evaluate(samples, methods, counts, workers, kept, report)
    about = {"data": str(data), "images": len(samples), "machine": platform.processor() or platform.machine()}
    if output is not None:
        _write(rows, about, output)
    if as_json:
        from spit.evaluation.superpixels.summary import as_document

        print_json(as_document(rows, **about))
    else:
        _show(rows, about, output)
    return 0


def _write(rows: "list[Row]", about: dict[str, Any], output: Path) -> None:
    from spit.evaluation.superpixels.plot import draw_comparison
    from spit.evaluation.superpixels.run import versions
    from spit.evaluation.superpixels.summary import as_document, as_markdown

    packages = {name: version for name, version in versions().items() if version is not None}
    where = f"{plural(about['images'], 'image')} of {about['data']}"
    listed = ", ".join(f"{name} {version}" for name, version in packages.items())
    document = as_document(rows, **about, versions=packages)
    write_files({output / "results.json": (json.dumps(document, indent=2) + "\n").encode(),
                 output / "results.md": as_markdown(rows, f"{where}; {about['machine']}; {listed}.").encode()})
    counts = sorted({row.wanted for row in rows})
    draw_comparison(rows, f"Superpixels on {plural(about['images'], 'image')} of {Path(about['data']).resolve().name}, "
                          f"{' to '.join(str(c) for c in dict.fromkeys((counts[0], counts[-1])))} regions",
                    output / "curves.png")


def _show(rows: "list[Row]", about: dict[str, Any], output: Path | None) -> None:
    from spit.evaluation.superpixels.summary import COLUMNS, missed, ranked, setting

    console = answers()
    for wanted in sorted({row.wanted for row in rows}):
        table = Table(title=f"{plural(about['images'], 'image')}, about {wanted} regions", title_justify="left")
        table.add_column("method")
        for heading, _ in COLUMNS.values():
            table.add_column(heading, justify="right")
        table.add_column("setting (images)")
        for row in ranked(rows, wanted):
            table.add_row(row.title, *row.cells(), setting(row), style="bold" if row.ours else None)
        console.print(table)
    for line in missed(rows):
        console.print(Text(line))
    if output is not None:
        console.print(Text(f"results.json, results.md, curves.png and images.jsonl are in {shown(output)}"))


def _need_matplotlib() -> None:
    """Rather now than after ten minutes."""
    from importlib.util import find_spec

    from spit.errors import MissingExtra

    if find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "plots", "drawing the comparison")
