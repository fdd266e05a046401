"""The command line, one verb a file. ``spit --help`` lists the verbs."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

STOPPED = 130  # the exit code of a shell after an interrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point of ``spit``. The exit code is 0, or 2 with one line on stderr for what a user got wrong."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print("spit: the command line needs typer and rich; install the extra: pip install 'spit-vit[cli]'",
              file=sys.stderr)
        return 2
    try:
        try:
            load_plugins(given)
        except ImportError as error:
            print(f"spit: a plugin could not be imported: {error}", file=sys.stderr)
            return 2
        from spit.cli.app import run

        return run(given)
    except KeyboardInterrupt:  # before typer runs
        print("spit: stopped", file=sys.stderr)
        return STOPPED


def load_plugins(arguments: Sequence[str]) -> None:
    """Import the modules that register tokenizers, features and backbones, before the commands are built.

    They are named by ``spit --plugin MODULE``, by the environment variable SPIT_PLUGINS (with commas between), or by
    entry points of the group ``spit.plugins``.
    """
    named = [name for name in os.environ.get("SPIT_PLUGINS", "").split(",") if name]
    for index, argument in enumerate(arguments):
        if argument == "--plugin" and index + 1 < len(arguments):
            named.append(arguments[index + 1])
        elif argument.startswith("--plugin="):
            named.append(argument.partition("=")[2])
    if named and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    for name in named:
        if name.endswith(".py"):
            raise ImportError(f"expected the name of a module, got {name}; give --plugin {Path(name).stem}")
        import_module(name)
    for point in entry_points(group="spit.plugins"):
        point.load()
