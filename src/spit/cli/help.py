"""Help as plain text that reads well at 80 columns: the flag with its value on the left, what it does on the right."""

from collections.abc import Callable
from math import isfinite
from typing import Any

from typer.core import TyperCommand

from spit.options import Spec

SETTINGS = {"max_content_width": 100}
NAMES = {int: "INT", float: "FLOAT", str: "TEXT"}


class Command(TyperCommand):
    """A verb whose options stand in sections, one for each help panel."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, without their types, options, then the other panels."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                argument = parameter.param_type_name == "argument"
                panel = getattr(parameter, "rich_help_panel", None) or ("Arguments" if argument else "Options")
                name, text = record
                text = text.replace("\\[", "[")  # which old versions of typer escape
                sections.setdefault(panel, []).append((name.partition(" ")[0] if argument else name, text))
        for panel, records in sections.items():
            with formatter.section(panel):
                formatter.write_dl(records)


def summary(verb: Callable[..., Any]) -> str:
    """The first line of a verb's help, which the list of verbs shows whole."""
    return (verb.__doc__ or "").partition("\n")[0]


def value_name(kind: Any) -> str | None:
    """How help shows a value of a type; None for a flag without one."""
    return None if kind is bool else NAMES.get(kind, "PATH")


def describe(spec: Spec, default: Any) -> str:
    """The help of an option with its default and range."""
    notes = []
    if default is not None and default is not False and default != ():
        shown = "on" if default is True else ", ".join(map(str, default)) if isinstance(default, tuple) else default
        notes.append(f"default: {shown}")
    bounds = ((spec.least, "at least"), (spec.above, "above"), (spec.most, "at most"), (spec.below, "below"))
    notes += [f"{words} {bound}" for bound, words in bounds if bound is not None and isfinite(bound)]
    return f"{spec.help.removesuffix('.')}." + (f"  [{'; '.join(notes)}]" if notes else "")
