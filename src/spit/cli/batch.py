"""``spit batch``: a corpus of images to Parquet, on one machine or a Ray cluster."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from spit.batch.options import OPERATIONS, Cluster, Columns, Work
from spit.cli.console import about_time, print_json, show, shown, tell, tell_compiling, waiting
from spit.cli.options import Models, Running, TokenizerChoice
from spit.cli.outputs import check_folder
from spit.errors import Stopped
from spit.wording import plural

Sources = Annotated[list[str] | None, typer.Argument(metavar="FOLDER", show_default=False, help="What --input takes.")]
Inputs = Annotated[list[str] | None, typer.Option(
    "--input", metavar="FOLDER|FILE|PATTERN|URI", show_default=False,
    help="Images, WebDataset shards (.tar) or Parquet: a folder, a file, a pattern such as 'shards-{000..099}.tar', or "
         "a URI such as s3://bucket/photos. Repeat the option for several.")]
Results = Annotated[Path, typer.Option(
    "--output", "-o", metavar="FOLDER", show_default=False,
    help="Folder for the run; made if it does not exist. Continues the run that it holds.")]


def batch(*, places: Sources = None, inputs: Inputs = None, output: Results, work: Work, models: Models,
          tokenizer: TokenizerChoice, columns: Columns, cluster: Cluster, running: Running) -> int:
    """Tokenize, classify, embed, explain or segment a corpus, on this machine or a Ray cluster.

    Writes Parquet: FOLDER/rows has a row for each image, FOLDER/rejects the images that failed with the reason; a file
    in each is a block of work. A block is written whole or not at all. A second run of the same command does only the
    blocks that are not there, also after a kill; a changed input, option or model is refused. Images that fail never
    stop a run. The exit code is 1, with the first reason on stderr, only if every image failed. Without --workers there
    is a Ray actor for each GPU, or for each CPU if there is no GPU. Every machine of a cluster must see --input and
    --output.
    """
    from spit.batch.run import Corpus, read_rows, run_batch  # needs pyarrow

    sources = (*(places or ()), *(inputs or ()))
    if not sources:
        raise ValueError("expected images to work on, got none; give spit batch FOLDER, or --input FOLDER")
    check_folder(output)
    corpus = Corpus(sources, work, models.expect_one(), models.size, lambda predictor: (
        tokenizer.build(predictor.model.config) if tokenizer.given else None), columns)
    tell_compiling()
    try:
        with waiting("Starting", None) as say:
            summary = run_batch(corpus, output, cluster, running.device, lambda doing, done, total: say(
                f"{OPERATIONS[work.op]}: {doing}", done, total or None))
    except KeyboardInterrupt:
        raise Stopped("stopped; the same command continues with the blocks that are left") from None
    code = 0
    if summary.rejects and not summary.rows:
        first = read_rows(output, rejects=True).slice(0, 1).to_pylist()[0]
        named = "" if first["error"].startswith(first["key"]) else f"{shown(first['key'])}: "
        tell(f"no image succeeded; the first reason: {named}{first['error']}")
        code = 1
    if running.as_json:
        print_json({"output": str(output), **asdict(summary)})
        return code
    done = summary.images - summary.earlier
    show(f"{plural(summary.images, 'image')}: {plural(summary.rows, 'row')} and {plural(summary.rejects, 'reject')} "
         f"are in {shown(output)}")
    if summary.rejects:
        show(f"What failed, and why, is in {shown(output / 'rejects')}")
    if summary.earlier:
        show(f"{summary.earlier:,} were done earlier")
    if done:
        show(f"{plural(done, 'image')} in {about_time(summary.seconds)} ({done / summary.seconds:,.1f} images/s)")
    return code
