"""``spit evaluate threshold``: fewer tokens by a final merge (App. B)."""

from typing import Annotated

import typer

from spit.cli.measuring import Data, Measuring, Models, about_line

Thresholds = Annotated[list[float] | None, typer.Option(
    "--threshold", metavar="X", show_default=False,
    help="Join neighbours closer than this; may be given several times; 0, .05, .1, .15 and .2 unless told.")]


def threshold(measuring: Measuring, data: Data, model: Models, threshold: Thresholds = None) -> int:
    """Tokens, images/s and accuracy when alike neighbours are merged, beside the paper's table."""
    from spit.evaluation.threshold import PAPER, evaluate, sheet

    test, subjects = measuring.folder(data), measuring.load(model)
    size = measuring.choose_size(subjects)
    with measuring.examiner(size) as examiner:
        rows = evaluate(examiner, subjects, test, sorted(set(PAPER if threshold is None else threshold)))
    about = about_line(data, len(test.images), size=size, precision=measuring.precision)
    measuring.report(sheet(rows, about), rows, size, data=str(data), images=len(test.images))
    return 0
