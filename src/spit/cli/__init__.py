"""The command line, one verb a file. ``spit --help`` names the verbs."""

import sys
from collections.abc import Sequence

STOPPED = 130  # what a shell makes of an interrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point of ``spit``: 0 where all went well, 2 with one line on stderr where it did not."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print("spit: the command line needs typer and rich; install the extra: pip install -e '.[cli]' in the "
              "project's folder", file=sys.stderr)
        return 2
    try:
        from spit.cli.app import run

        return run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:  # before there was anyone to hear of it
        print("spit: stopped", file=sys.stderr)
        return STOPPED
