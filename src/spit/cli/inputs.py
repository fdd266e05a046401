"""The images that a user names, each with a unique name for its outputs."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from os.path import realpath
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import torch

from spit import __version__
from spit.cli import tracebacks
from spit.cli.companions import companions
from spit.cli.console import Say, print_json, show, show_table, shown, tell, track
from spit.cli.outputs import real_paths, write_files
from spit.data.folders import photos_and_results, read_about
from spit.data.images import expect_some
from spit.errors import ImageError, SpitError, Stopped
from spit.forward_pass import each_alone
from spit.tokens import plural

if TYPE_CHECKING:
    from spit.cli.claims import Shared

Document = dict[str, Any]
FOR_EACH_THREAD = 4  # images of a group, so that threads seldom wait for each other


@dataclass(frozen=True)
class Input:
    """An image file, and the path below the output folder, without a suffix, that its outputs share."""

    path: Path
    stem: PurePath
    folder: Path
    given: frozenset[str]  # the real paths of every image of the run; outputs never overwrite them

    def name(self, suffix: str) -> str:
        """The path of an output below the folder."""
        return f"{self.stem}.{suffix}"

    def write(self, about: str, document: Document, contents: dict[str, tuple[str, bytes]],
              kept: Collection[str] = ()) -> Document:
        """Write files about the image, suffix and bytes by kind, and a document with the suffix ``about``; return it.

        Files that an earlier run wrote about the image, and this one did not, are removed, but for those with a suffix
        of ``kept``. If they were about another image of the same name, a line on stderr says so.
        """
        files = {kind: self.name(suffix) for kind, (suffix, _) in contents.items()} | {
            suffix: self.name(suffix) for suffix in kept}
        document = {"image": str(self.path), **document, "files": files, "spit": __version__}
        file = self.folder / self.name(about)
        earlier, left = read_about(file).get("image"), self.left_by_earlier(about, files.values())
        write_files({**{self.folder / files[kind]: data for kind, (_, data) in contents.items()},
                     file: (json.dumps(document, indent=2) + "\n").encode()}, self.given)
        for one in left:
            with suppress(OSError):
                one.unlink()
        if not kept and isinstance(earlier, str) and realpath(earlier) != realpath(self.path):
            tell(f"{shown(file)} and its files replaced those of {shown(earlier)}; another --output keeps both")
        return document

    def left_by_earlier(self, about: str, files: Iterable[str]) -> list[Path]:
        """Files that an earlier run wrote about the image, and that are not among ``files``."""
        file = self.folder / self.name(about)
        written = {PurePath(one).name for one in (*files, self.name(about))}
        names = {PurePath(str(one)).name for one in read_about(file)["files"].values()} - written
        left = [file.with_name(name) for name in sorted(names)  # beside the document, whatever that says
                if name.startswith(f"{self.stem.name}.")]
        return [one for one in left if realpath(one) not in self.given]


def find_inputs(paths: Sequence[Path], output: Path | None = None) -> list[Input]:
    """The images that files and folders name.

    A folder keeps its structure, below its own name if several paths are given. Two images whose outputs would share a
    name keep their extensions in it (``cat.jpg.json``, ``cat.png.json``). A missing path beside an existing one counts
    as a file: :func:`answer_each` reports that it cannot be read. Images that earlier runs wrote are left out: those
    that a document names, and all below ``output`` if that does not hold the folder itself. A line on stderr says so.
    """
    expect_some(paths)
    found: dict[Path, PurePath] = {}  # with suffixes; a file named twice is done once
    for path in paths:
        for file, name in _walk(path, output, alone=len(paths) == 1):
            found.setdefault(file, name)
    if not found:
        raise ImageError(f"{shown(paths[0])}: expected images, got none but those that spit wrote; give the folder of "
                         "your photos, or another --output")
    # Names are compared as a file system that ignores case does.
    stems = Counter(str(name.with_suffix("")).casefold() for name in found.values())
    given = real_paths(found)
    inputs = [Input(file, name if stems[str(name.with_suffix("")).casefold()] > 1 else name.with_suffix(""),
                    output or Path(), given) for file, name in found.items()]
    taken: dict[str, Path] = {}
    for item in inputs:
        other = taken.setdefault(str(item.stem).casefold(), item.path)
        if other is not item.path and output is not None:
            raise ValueError(f"{shown(other)} and {shown(item.path)} would be written under one name, {item.stem}; "
                             "give each its own --output, or the folder above both")
    return inputs


def answer_each(inputs: Sequence[Input], description: str, work: Callable[[Input, Say], Document],
                show_all: Callable[[list[Document]], None], as_json: bool, shared: "Shared | None" = None,
                workers: int = 0, alone: Callable[[Input], bool] | None = None, **about: Any) -> int:
    """Work on every image behind a progress bar, print the answers, and return the exit code.

    An image that fails is reported, and the others go on. A single image raises its error. A full disk and the like
    end the run.

    Args:
        work: takes an image, and a function that shows what is being done.
        show_all: prints the answers if there are any.
        shared: takes answers of other processes on the same images; an image that one is working on comes last.
        workers: processes on the images of ``shared``, this one among them; 0 is this one alone.
        alone: whether an image has all threads; the others are worked on side by side, a thread each (default: each
            has all threads).
        about: what JSON has beside images and failures.
    """
    found: dict[Path, Document] = {}
    failed: list[Document] = []
    others: list[Input] = []

    def answer(item: Input, say: Say, wait: bool) -> None:
        if shared is None:
            found[item.path] = work(item, say)
            return
        with shared.claim(item, wait) as mine:
            if mine:
                found[item.path] = shared.finished(item) or work(item, say)
            else:
                others.append(item)

    def attempt(item: Input, say: Say, wait: bool = False) -> None:
        try:
            answer(item, say, wait)
        except (SpitError, ValueError) as error:
            if len(inputs) == 1 or tracebacks.wanted():
                raise
            reason = tracebacks.own_tokenizer_line(error) or " ".join(str(error).split())
            failed.append({"image": str(item.path), "error": reason})
            tell(reason if shown(item.path) in reason else f"{shown(item.path)}: {reason}")

    with ExitStack() as stack:
        if shared is not None:
            stack.enter_context(shared.alone(inputs[0].folder))
            stack.enter_context(companions(min(workers, len(inputs)) - 1, shared.before))
        items, say = stack.enter_context(track(inputs, description))
        try:
            for group in side_by_side(items, alone):
                each_alone(lambda item: attempt(item, say), group)
            for item in others:
                attempt(item, say, wait=True)
        except KeyboardInterrupt:
            if shared is None:
                raise
            raise Stopped(f"stopped; the same command {shared.next_run}") from None
    answers = [found[item.path] for item in inputs if item.path in found]
    if shared is not None:
        shared.taken.sort(key={str(item.path): place for place, item in enumerate(inputs)}.__getitem__)
    if failed:
        tell(f"{len(failed)} of {len(inputs)} images failed")
    if as_json:
        print_json({**about, "images": answers, "failed": failed})
    elif answers:
        show_all(answers)
    return 2 if failed else 0


def side_by_side(items: Iterable[Input], alone: Callable[[Input], bool] | None) -> Iterator[list[Input]]:
    """Images in their order, in groups that torch's threads divide among them; those that are to be alone are."""
    group: list[Input] = []
    for item in items:
        if alone is None or alone(item):
            yield from filter(None, (group, [item]))
            group = []
        else:
            group.append(item)
            if len(group) == FOR_EACH_THREAD * torch.get_num_threads():
                yield group
                group = []
    if group:
        yield group


def show_files(documents: list[Document], folder: Path, headings: Sequence[str],
               cells: Callable[[Document], Sequence[str]]) -> None:
    """Print a row for each image, with its size and further cells, and where the files are."""
    show_table(["image", "width", "height", *headings], [
        [shown(document["image"]), f"{document['width']:,}", f"{document['height']:,}", *cells(document)]
        for document in documents])
    show(f"{len(documents[0]['files']) + 1} files for each image are in {shown(folder)}")


def _walk(path: Path, output: Path | None, alone: bool) -> list[tuple[Path, PurePath]]:
    if not path.is_dir():
        return [(path, PurePath(path.name))]
    files, results = photos_and_results(path)
    known = len(files) + len(results)
    if output is not None and not Path(realpath(path)).is_relative_to(realpath(output)):
        files = [file for file in files if not Path(realpath(file)).is_relative_to(realpath(output))]
    if files and len(files) < known:
        tell(f"{shown(path)}: left out {plural(known - len(files), 'image')} that spit wrote")
    if files and output is not None and realpath(path) == realpath(output):
        tell(f"{shown(path)}: --output is the folder of your photos, so files are written beside them; another folder "
             "keeps them apart")
    prefix = PurePath() if alone else PurePath(PurePath(realpath(path)).name)
    return [(file, prefix / file.relative_to(path)) for file in files]
