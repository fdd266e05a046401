"""What the verbs of ``spit evaluate`` that run models share: options, models, progress, and the report."""

import json
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spit.cli.console import answers, long_bar, print_json, shown, waiting
from spit.cli.options import DEFAULT_MODEL, AsJson, Device, choose_device, listed
from spit.cli.outputs import write_files

if TYPE_CHECKING:
    from spit.evaluation.answers import Examiner, Subject
    from spit.evaluation.answers import Progress as Report
    from spit.evaluation.labelled import LabelledFolder
    from spit.evaluation.sheets import Sheet

Data = Annotated[Path, typer.Option(
    "--data", metavar="FOLDER", show_default=False,
    help="Images in a folder for each class: in sorted order, or named by class index or WordNet id.")]
Models = Annotated[list[str], typer.Option(
    "--model", "--models", metavar="NAME|PATH|HUB_ID", show_default=DEFAULT_MODEL,
    default_factory=lambda: [DEFAULT_MODEL],
    help="A name of spit.list_models() whose weights come with spit, a folder that spit.save_model wrote, a Hugging "
         "Face hub id, or a ViT in timm's names (.safetensors or .pth); several with commas between, or one by one.")]
Output = Annotated[Path | None, typer.Option(
    "--output", "-o", metavar="FOLDER", show_default=False,
    help="Write results.json, results.md and images.jsonl there. A run that was stopped goes on from images.jsonl.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, show_default=False,
                                           help="Only so many images, spread over the set.")]
Batch = Annotated[int | None, typer.Option("--batch", min=1, show_default=False,
                                           help="Images in a batch; 256 on a GPU, 16 on a CPU unless told.")]
Size = Annotated[int | None, typer.Option(
    "--size", min=1, show_default=False,
    help="Side of the central square that models see; the one that they say, 224 where none does, unless told.")]


@dataclass(frozen=True)
class Measuring:
    """How models are run, and where the results go."""

    size: Size = None
    batch: Batch = None
    precision: Annotated[str, typer.Option("--precision", metavar="fp32|bf16",
                                           help="Of the transformer; bf16 on a GPU alone.")] = "fp32"
    limit: Limit = None
    device: Device = "auto"
    output: Output = None
    as_json: AsJson = False

    def load(self, sources: Sequence[str]) -> "list[Subject]":
        """The models that ``--model`` names, on the device, in evaluation mode.

        Raises:
            WeightsError: no such weights, or damaged ones.
            ValueError: an unknown name, or the same model twice.
        """
        place = choose_device(self.device)
        check_output(self.output)
        sources = listed(sources)
        if len(set(sources)) < len(sources):
            raise ValueError("expected each --model once, got one twice")
        with waiting("Loading models"):
            from spit.cli.models import called
            from spit.evaluation.answers import Subject

            short = [called(source) for source in sources]
            names = short if len(set(short)) == len(short) else sources
            return [Subject.of(name, _load(source).to(place).eval())
                    for name, source in zip(names, sources, strict=True)]

    def choose_size(self, subjects: "Sequence[Subject]") -> int:
        """Side of the square that all of them see.

        Raises:
            ValueError: ``--size`` is not given, and the models' own differ.
        """
        from spit.cli.models import choose_size

        return choose_size(self.size, {subject.name: subject.model for subject in subjects}, "--size")

    def folder(self, data: Path) -> "LabelledFolder":
        """The labelled images of ``--data``, ``--limit`` of them."""
        from spit.evaluation.labelled import labelled_folder

        return labelled_folder(data).spread(self.limit)

    @contextmanager
    def examiner(self, size: int) -> "Iterator[Examiner]":
        """Who asks the models, behind a progress bar, keeping answers below ``--output``."""
        import torch

        from spit.evaluation.answers import Examiner, Setup

        place = torch.device(choose_device(self.device))
        setup = Setup(size, self.batch or (256 if place.type == "cuda" else 16), place, self.precision)
        with progress_bar() as report, Examiner(setup, journal(self.output), report) as examiner:
            yield examiner

    def report(self, sheet: "Sheet", rows: Sequence[Any], size: int, **about: Any) -> None:
        """Write and print the results."""
        report(sheet, rows, self.output, self.as_json, size=size, precision=self.precision,
               device=choose_device(self.device), **about)


@contextmanager
def progress_bar() -> "Iterator[Report]":
    """A function that shows what is being done, how much is, and how much there is in all.

    It is called when something else begins to be done, too: what is done already then is an earlier run's, and it
    says so in the end.

    Raises:
        Stopped: by an interrupt.
    """
    try:
        with long_bar(Console(stderr=True)) as bar:
            task = bar.add_task("Starting", total=None)
            last, before, earlier = "", 0, 0

            def show(doing: str, done: int, total: int) -> None:
                nonlocal last, before, earlier
                if doing != last:
                    earlier += done - before
                last, before = doing, done
                bar.update(task, description=doing, completed=done, total=total)

            yield show
            if earlier:
                bar.console.print(f"{earlier:,} of {before:,} answers are an earlier run's", highlight=False)
    except KeyboardInterrupt:
        from spit.training.errors import Stopped

        raise Stopped("stopped; with --output the same command goes on from what was measured") from None


def check_output(output: Path | None) -> None:
    """Refuse a file where a folder must be, before the work."""
    if output is not None and output.exists() and not output.is_dir():
        raise ValueError(f"expected a folder for --output, got the file {shown(output)}")


def journal(output: Path | None) -> Path | None:
    """Where answers are kept, image by image."""
    return None if output is None else output / "images.jsonl"


def about_line(data: Path, images: int, **settings: Any) -> str:
    """Data, machine and settings, for the head of a table."""
    from spit.tokens import plural

    told = "".join(f"; {key} {value}" for key, value in settings.items())
    return f"{plural(images, 'image')} of {shown(data)}{told}; {_machine()}."


def report(sheet: "Sheet", rows: Sequence[Any], output: Path | None, as_json: bool, pictures: Sequence[Path] = (),
           **about: Any) -> None:
    """Write results.json and results.md, whole or not at all, and print the table or the document.

    Args:
        pictures: written there already; the last line names them too.
    """
    from spit import __version__

    document = {**about, "machine": _machine(), "spit": __version__, "rows": [asdict(row) for row in rows]}
    if output is not None:
        write_files({output / "results.json": (json.dumps(document, indent=2) + "\n").encode(),
                     output / "results.md": sheet.markdown().encode()})
    if as_json:
        print_json(document)
        return
    table = Table(title=f"{sheet.title}: {sheet.about}", caption=sheet.notes, title_justify="left",
                  caption_justify="left")
    for index, heading in enumerate(sheet.headings):
        table.add_column(heading, justify="left" if index < sheet.words else "right")
    for cells in sheet.cells:
        table.add_row(*(Text(cell) for cell in cells))
    console = answers()
    if console.measure(table, options=console.options.update(width=1000)).minimum <= console.width:
        console.print(table)
    else:  # a terminal too narrow for the table: a line for each cell
        console.print(Text(f"{sheet.title}: {sheet.about}"))
        for cells in sheet.cells:
            named = zip(sheet.headings, cells, strict=True)
            console.print(Text("\n" + "\n".join(f"{name}: {cell}" for name, cell in named if cell)))
        console.print(Text(f"\n{sheet.notes}"))
    if output is not None:
        written = ["images.jsonl", "results.json", "results.md", *(picture.name for picture in pictures)]
        console.print(Text(f"{', '.join(written[:-1])} and {written[-1]} are in {shown(output)}"))


def _load(source: str) -> Any:
    from spit import registry, weights
    from spit.cli.models import WAYS, embedded, load_source
    from spit.errors import WeightsError

    path = Path(source)
    named = not path.exists() and path.name == source and path.suffix.lower() not in weights.FILE_SUFFIXES
    if not named:
        return load_source(source, None)
    registry.model_config(source)  # an unknown name is refused as such
    if not embedded(source):
        raise WeightsError(f"no trained weights of {source} come with this version of spit; "
                           + WAYS.replace("--weights with", "--model"))
    return load_source(None, source)


def _machine() -> str:
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
