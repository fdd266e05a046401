"""The command line, one verb a file. ``spit --help`` lists the verbs."""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from spit.environment import environment
from spit.errors import MissingExtra, SpitError
from spit.interruption import STOPPED, on_signals

TRAINING = ("train", "retrofit")


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point of ``spit``. The exit code is 0, or 2 with one line on stderr for what a user got wrong.

    SIGTERM ends a command as Ctrl-C does, so that no locks or half-written files are left.
    """
    path = [*sys.path]
    try:
        with on_signals(signal.default_int_handler, signal.SIGTERM), warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="PIL")  # of damaged metadata; damaged images are refused
            return _main(sys.argv[1:] if arguments is None else list(arguments))
    finally:
        sys.path[:] = path  # plugins may have added to it


def _main(given: list[str]) -> int:
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print("spit:", MissingExtra("typer and rich", "cli", "the command line"), file=sys.stderr)
        return 2
    try:
        try:
            named, rest = split_plugins(given)
            # Decoding processes need the cores on which torch's threads would spin while they wait.
            with environment(**({"OMP_WAIT_POLICY": "PASSIVE"} if rest[:1] and rest[0] in TRAINING else {})):
                load_plugins(named)
                from spit.cli.app import run

                return run([*(f"--plugin={name}" for name in named), *rest])
        except (ValueError, SpitError) as error:
            if os.environ.get("SPIT_TRACEBACK") == "1":
                raise
            print(f"spit: {error}", file=sys.stderr)
            return 2
    except KeyboardInterrupt:  # before typer runs
        print("spit: stopped", file=sys.stderr)
        return STOPPED


def split_plugins(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The modules of ``--plugin``, which may stand before or after the verb, and the other arguments."""
    named, rest = [], []
    left = iter(arguments)
    for argument in left:
        if argument == "--":
            rest += [argument, *left]
        elif argument == "--plugin":
            name = next(left, None)
            if name is None:
                raise ValueError("expected a module after --plugin, got none; give spit --plugin MODULE VERB")
            named.append(name)
        elif argument.startswith("--plugin="):
            named.append(argument.partition("=")[2])
        else:
            rest.append(argument)
    return named, rest


def load_plugins(given: Sequence[str]) -> None:
    """Import the modules that register tokenizers, features and backbones, before the commands are built.

    They are named by ``spit --plugin MODULE``, by the environment variable SPIT_PLUGINS (with commas between), or by
    entry points of the group ``spit.plugins``.

    Raises:
        SpitError: the name is not that of a module, or the module raised an exception.
    """
    named = [*(name for name in os.environ.get("SPIT_PLUGINS", "").split(",") if name), *given]
    if named and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    for name in named:
        if name.endswith(".py") or not all(part.isidentifier() for part in name.split(".")):
            path = Path(name)
            raise SpitError(f"expected the name of a module, got {name!r}; in the folder of the file, give --plugin "
                              f"{path.stem if path.stem.isidentifier() else 'MODULE'}")
        _load(name, partial(import_module, name))
    for point in entry_points(group="spit.plugins"):
        _load(point.name, point.load)


def _load(name: str, load: Callable[[], object]) -> None:
    try:
        load()
    except Exception as error:  # of somebody else's code
        said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
        raise SpitError(f"plugin {name} could not be imported: {said}") from error
