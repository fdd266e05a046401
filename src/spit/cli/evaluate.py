"""``spit evaluate``: how good the parts are, one command for each protocol."""

import typer

from spit.cli.evaluate_classification import classification
from spit.cli.evaluate_counts import counts
from spit.cli.evaluate_faithfulness import faithfulness
from spit.cli.evaluate_saliency import saliency
from spit.cli.evaluate_superpixels import superpixels
from spit.cli.evaluate_swap import swap
from spit.cli.evaluate_threshold import threshold
from spit.cli.options import command

evaluation = typer.Typer(name="evaluate", help="Measure quality by published protocols.", no_args_is_help=True,
                         rich_markup_mode="markdown")

for verb in (superpixels, classification, swap, threshold, counts, saliency, faithfulness):
    evaluation.command()(command(verb))


@evaluation.callback()
def _evaluate() -> None:
    """Measure quality by published protocols."""  # with a callback, one command keeps its name
