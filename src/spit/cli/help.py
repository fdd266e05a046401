"""Help as plain text that reads well at 80 columns: the flag with its value on the left, what it does on the right."""

from math import isfinite
from typing import Any

from typer.core import TyperCommand, TyperGroup

from spit.options import Spec

SETTINGS = {"max_content_width": 100}
NAMES = {int: "INT", float: "FLOAT", str: "TEXT"}


class Command(TyperCommand):
    """A verb whose options stand in sections, one for each help panel."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """``[OPTIONS] IMG...``, which versions of typer write in different ways; ``[IMG]...`` may be left out."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        names = [(f"{one.metavar}" if one.required else f"[{one.metavar}]", one.nargs == -1) for one in arguments]
        return ["[OPTIONS]", *(f"{name}..." if several else name for name, several in names)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, options, then the other panels."""
        write_sections(self, ctx, formatter)


class Group(TyperGroup):
    """Several verbs."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Options, then the verbs."""
        write_sections(self, ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(self.commands[name])) for name in self.list_commands(ctx)])


def write_sections(command: Any, ctx: Any, formatter: Any) -> None:
    """Write a command's parameters by their panels; an argument goes without its type."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        argument = parameter.param_type_name == "argument"
        panel = getattr(parameter, "rich_help_panel", None) or ("Arguments" if argument else "Options")
        name, text = record
        sections.setdefault(panel, []).append((
            name.partition(" ")[0] if argument else name, text.replace("\\[", "[")))  # old versions of typer escape it
    for panel, records in sections.items():
        with formatter.section(panel):
            formatter.write_dl(records)


def _summary(command: Any) -> str:
    """The first paragraph of a command's help, whole."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


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
