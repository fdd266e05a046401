"""What the verbs about images share: each image is answered once, one that fails stops no other, and all are shown."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from spit.cli.console import print_json, reason, show, show_table, shown, tell, traceback_wanted, waiting
from spit.cli.inputs import Document, Input
from spit.cli.results import Results
from spit.cli.workers import Work, work_apart
from spit.errors import SpitError, Stopped
from spit.options import Options, option

FOR_EACH_THREAD = 4  # images of a group, so that threads seldom wait for each other


@dataclass(frozen=True)
class SharingOptions(Options):
    """Which images are worked on, and by how many processes."""

    again: bool = option(False, "Process images again that an earlier run with these settings finished")
    workers: int = option(0, "Processes that share the work; 0 works in this one", least=0)


def answer_each(inputs: Sequence[Input], description: str, work: Work,
                show_all: Callable[[list[Document]], None], as_json: bool, results: Results | None = None,
                workers: int = 0, alone: Callable[[Input], bool] | None = None, **about: object) -> int:
    """Work on every image behind a progress bar, print the answers, and return the exit code.

    An image that fails is reported, and the others go on. A single image raises its error. A full disk and the like
    end the run.

    Args:
        work: takes an image, and a function that shows what is being done.
        show_all: prints the answers if there are any.
        results: of earlier runs too; an image that one of them finished is not worked on.
        workers: processes that share the images; fewer than two are this one.
        alone: whether an image has all threads; the others are worked on side by side, a thread each (default: each
            has all threads).
        about: what JSON has beside images and failures.
    """
    answers: dict[Path, Document] = {}
    earlier: list[str] = []
    failed: list[Document] = []

    def fail(item: Input, why: str) -> None:
        failed.append({"image": str(item.path), "error": why})
        tell(why if shown(item.path) in why else f"{shown(item.path)}: {why}")

    def attempt(item: Input, answer: Callable[[Input], Document | None]) -> bool:
        """Whether there is an answer now, or a failure."""
        try:
            document = answer(item)
        except (SpitError, ValueError) as error:
            if len(inputs) == 1 or traceback_wanted():
                raise
            fail(item, reason(error))
            return True
        if document is not None:
            answers[item.path] = document
        return document is not None

    def unfinished(items: Iterable[Input]) -> Iterator[Input]:
        for number, item in enumerate(items):
            say(done=number)
            if results is None or not attempt(item, results.done):
                yield item
            elif item.path in answers:
                earlier.append(str(item.path))

    from spit.forward_pass import each_alone  # imports torch

    with ExitStack() as stack:
        if results is not None:
            stack.enter_context(results.alone())
        say = stack.enter_context(waiting(description, len(inputs)))
        try:
            if min(workers, len(inputs)) > 1:
                for item, answer in work_apart(work, unfinished(inputs), min(workers, len(inputs))):
                    if isinstance(answer, str):
                        fail(item, answer)
                    else:
                        answers[item.path] = answer
            else:
                for group in side_by_side(unfinished(inputs), alone):
                    each_alone(lambda item: attempt(item, lambda item: work(item, say)), group)
        except KeyboardInterrupt:
            if results is None:
                raise
            raise Stopped("stopped; the same command continues with the remaining images") from None
    documents = [answers[item.path] for item in inputs if item.path in answers]
    if failed:
        tell(f"{len(failed)} of {len(inputs)} images failed")
    if as_json:
        done_earlier = {} if results is None else {"done_earlier": earlier}
        print_json({**about, **done_earlier, "images": documents, "failed": failed})
    elif documents:
        show_all(documents)
        if earlier:
            show(f"{len(earlier)} of {len(documents)} were done earlier with these settings; --again repeats them")
    return 2 if failed else 0


def side_by_side(items: Iterable[Input], alone: Callable[[Input], bool] | None) -> Iterator[list[Input]]:
    """Images in their order, in groups that torch's threads divide among them; those that are to be alone are."""
    import torch

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
