"""The verbs put together, and the place where an error becomes one line."""

import os
import sys
from typing import Annotated, Any

import typer

from spit.cli.batch import batch
from spit.cli.bench import bench
from spit.cli.classify import classify
from spit.cli.console import own_tokenizer_line, tell, traceback_wanted
from spit.cli.convert import convert
from spit.cli.correspond import correspond
from spit.cli.demo import demo
from spit.cli.doctor import doctor
from spit.cli.evaluate import evaluation
from spit.cli.explain import explain
from spit.cli.export import export
from spit.cli.help import SETTINGS, Command, summary
from spit.cli.options import command
from spit.cli.prototypes import prototypes
from spit.cli.retrofit import retrofit
from spit.cli.segment import segment
from spit.cli.serve import serve
from spit.cli.tokenize import tokenize
from spit.cli.train import train
from spit.cli.train_head import train_head
from spit.errors import SpitError, Stopped
from spit.interruption import STOPPED

app = typer.Typer(
    name="spit",
    help="Superpixel tokens for Vision Transformers.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=SETTINGS,
)
for verb in (demo, tokenize, classify, explain, segment, correspond, prototypes, batch, bench, train, train_head,
             retrofit, convert, export, serve, doctor):
    app.command(cls=Command, short_help=summary(verb))(command(verb))
app.add_typer(evaluation)


def _show_version(asked: bool) -> None:
    if asked:
        from spit import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _spit(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True,
                                                callback=_show_version)] = False,
          plugin: Annotated[list[str] | None, typer.Option(
              "--plugin", metavar="MODULE", show_default=False,
              help="Import a Python module first that registers a tokenizer, features or a backbone. May also follow "
                   "the verb; repeat it for several.")] = None) -> None:
    """Superpixel tokens for Vision Transformers."""


def run(arguments: list[str]) -> int:
    """Run one command. What a user can get wrong ends in one line on stderr and exit code 2.

    ``SPIT_TRACEBACK=1`` in the environment shows the traceback instead. An error of any other kind is a bug of spit and
    keeps its traceback; so does one of a plugin, except for that of a tokenizer's call.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # an ASCII terminal shows "?" rather than failing on ×
    try:
        if any(not argument or (argument.startswith("--") and argument.endswith("=")) for argument in arguments):
            # As a path it would be the current folder.
            raise ValueError("expected a value, got an empty argument; if it is a shell variable, it is not set")
        bare = not arguments or arguments == [evaluation.info.name]
        # In this mode typer returns the code of typer.Exit and raises errors of usage.
        code = app([*arguments, "--help"] if bare else arguments, prog_name="spit", standalone_mode=False)
        sys.stdout.flush()
        if code == STOPPED:  # typer's answer to an interrupt inside a command
            tell("stopped")
        return int(code or 0)
    except BrokenPipeError:  # the reader of the pipe, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except (KeyboardInterrupt, typer.Abort, Stopped) as error:
        tell(str(error) or "stopped")
        return STOPPED
    except Exception as error:
        line = _line(error)
        if line is None or traceback_wanted():
            raise
        tell(line)
        return 2


def _line(error: Exception) -> str | None:
    """What to say of an error that a user, or a tokenizer of theirs, can cause; None for a bug of spit."""
    if hasattr(error, "format_message"):  # typer's, or click's where an older typer stands on it
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "spit"
        cause: Any = error.__cause__  # pydantic's, in newer versions of typer
        message = error.format_message()
        if hasattr(cause, "errors"):
            message += f", got {cause.errors()[0]['input']!r}"
        return f"{message} (see {where} --help)"
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "not enough memory for an image of this size; give a smaller one"
    own = own_tokenizer_line(error)
    if own is not None:
        return own
    if isinstance(error, OSError) and not isinstance(error, SpitError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, SpitError | ValueError | TypeError | OSError):
        return str(error) or type(error).__name__
    return None
