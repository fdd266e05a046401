"""Options: the name, type, default, range and help of a setting, declared once.

A dataclass that derives from :class:`Options` declares each field with :func:`option`. Python checks the values when
the dataclass is made, :func:`documented` writes the docstring, recipes read TOML tables with
:meth:`Options.from_dict`, and :mod:`spit.cli` makes a command-line option of each field. A plain field has a type and
no range; its type is checked too.

This is our own because the core may not depend on a configuration library, and because pydantic would coerce where we
refuse.
"""

import operator
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from spit.wording import suggestion

Kind = TypeVar("Kind", bound=type)
TYPES = {int: "a whole number", float: "a number", NoneType: "None"}
SECTION = re.compile(r"\n\n    (?=(?:Shape|Example|Note|Raises|References):\n)")


@dataclass(frozen=True)
class Spec:
    """What :func:`option` says about a field beside its name, type and default."""

    help: str
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    flag: str | None = None
    short: str | None = None

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError if a value, or one of several, is out of range; None is not."""
        if value is None or isinstance(value, tuple | list):
            for one in value or ():
                self.check(name, one)
            return
        bounds = ((self.least, "of at least", operator.ge), (self.above, "above", operator.gt),
                  (self.most, "of at most", operator.le), (self.below, "below", operator.lt))
        for bound, words, holds in bounds:
            if bound is not None and not holds(value, bound):  # NaN fails every comparison
                raise ValueError(f"expected {name} {words} {bound}, got {value}")
        if self.choices and isinstance(value, str):
            check_choice(name, value, self.choices)


def option(default: Any, help: str, *, least: float | None = None, above: float | None = None,
           most: float | None = None, below: float | None = None, choices: Iterable[str] = (),
           metavar: str | None = None, flag: str | None = None, short: str | None = None) -> Any:
    """A dataclass field with its help and range.

    Args:
        default: a value, or a class or function that makes one (for dicts and nested options).
        help: one sentence, without the default.
        least, above, most, below: bounds of a number, or of each number of a tuple.
        choices: the words that a string, or each string of a tuple, may be; a Literal type has them already.
        metavar: how the command line shows the value.
        flag: the name on the command line, if it differs from the field's, also of the opposite (``crop/--whole``);
            ``short`` is a letter beside it (``-o``).
    """
    spec = Spec(help, least, above, most, below, tuple(choices), metavar, flag, short)
    if callable(default):
        return field(default_factory=default, metadata={"option": spec})
    return field(default=default, metadata={"option": spec})


def same(kind: type, name: str, default: Any) -> Any:
    """An option that another dataclass declares, with another default."""
    spec = next(item.metadata["option"] for item in fields(kind) if item.name == name)
    return field(default=default, metadata={"option": spec})


class Options:
    """Base of dataclasses whose fields are options: values are checked when the object is made."""

    def __post_init__(self) -> None:
        check(self)

    def replace(self, **changes: Any) -> Self:
        """The same options with some changed."""
        refuse_unknown(changes, _fields(type(self)), "option")
        return replace(self, **changes)  # type: ignore[type-var]

    def to_dict(self) -> dict[str, Any]:
        """The options as JSON or TOML has them; a path is text."""
        values: dict[str, Any] = _plain(self)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], what: str = "option") -> Self:
        """The inverse of :meth:`to_dict`. Options left out take their defaults, also those of a nested table.

        A list becomes a tuple, text a path where the field is one, and "none" becomes None where the field may be None,
        since TOML has no null.
        """
        known, kinds = _fields(cls), get_type_hints(cls)
        refuse_unknown(values, known, what)
        return cls(**{name: _read(known[name], kinds[name], value) for name, value in values.items()})


def check(options: Any) -> None:
    """Raise TypeError or ValueError if a field does not have its declared type, range or choice; defaults pass."""
    for item, kind, spec in declared(type(options), plain=True):
        value = getattr(options, item.name)
        if value is not item.default and not _fits(kind, value):
            raise TypeError(f"expected {item.name} to be {_type_name(kind)}, got {value!r}")
        spec.check(item.name, value)


def declared(kind: type, plain: bool = False) -> tuple[tuple[Field[Any], Any, Spec], ...]:
    """The options of a dataclass: field, type and what :func:`option` said; ``plain`` fields, without it, if asked."""
    return _declared(kind, plain)


@cache  # to read type hints takes as long as superpixels of a small image
def _declared(kind: Any, plain: bool) -> tuple[tuple[Field[Any], Any, Spec], ...]:
    found, kinds = [], get_type_hints(kind)
    for item in fields(kind):
        if plain or "option" in item.metadata:
            spec, hint = item.metadata.get("option", Spec(item.name.replace("_", " "))), kinds[item.name]
            words = get_args(hint) if get_origin(hint) is Literal else ()
            found.append((item, hint, replace(spec, choices=words) if words else spec))
    return tuple(found)


def documented(kind: Kind) -> Kind:
    """Class decorator: append each option's help, with its default, to the docstring as ``Args``."""
    lines = []
    for item, _, spec in declared(kind):
        default = "" if item.default is MISSING or item.default is None else f" (default: {item.default})"
        lines.append(f"        {item.name}: {spec.help.removesuffix('.')}{default}.")
    head, *tail = SECTION.split((kind.__doc__ or "").rstrip(), maxsplit=1)
    kind.__doc__ = "\n".join([f"{head}\n\n    Args:", *lines, *("\n    " + part for part in tail), "    "])
    return kind


def read_value(text: str) -> Any:
    """A value that was given as text: what TOML reads, or a bare word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text.strip()


def check_choice(name: str, value: object, known: Iterable[str], hint: str = "") -> None:
    """Raise ValueError if a word is not among the known ones; name the nearest, or give the hint if none is near."""
    known = list(known)
    if value not in known:
        hint = suggestion(value, known, hint)
        raise ValueError(f"expected {name} to be one of {', '.join(known)}, got {value!r}{hint and '; ' + hint}")


def refuse_unknown(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise ValueError for the first name that is not known; name the nearest, or all if none is near."""
    known = list(known)
    for name in names:
        if name not in known:
            hint = suggestion(name, known, f"known are {', '.join(known)}" if known else "it has none")
            raise ValueError(f"unknown {what} {name!r}; {hint}")


def _type_name(kind: Any) -> str:
    """A type as an error message shows it."""
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        return " or ".join(map(_type_name, get_args(kind)))
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        return f"tuple of {'' if inner[-1] is Ellipsis else f'{len(inner)} '}{getattr(inner[0], '__name__', inner[0])}"
    return TYPES.get(kind, getattr(kind, "__name__", str(kind)))


def _fits(kind: Any, value: Any) -> bool:
    origin, inner = get_origin(kind), get_args(kind)
    if isinstance(kind, UnionType) or origin is Union:
        return any(_fits(one, value) for one in inner)
    if origin is Literal:  # of words, the choices say which
        return value in inner or (isinstance(value, str) and isinstance(inner[0], str))
    if origin is tuple:
        if not isinstance(value, tuple) or (inner[-1] is not Ellipsis and len(value) != len(inner)):
            return False
        return all(_fits(inner[0], item) for item in value)
    if kind in (Any, object):
        return True
    plain = (int, float) if kind is float else origin or kind
    try:
        return isinstance(value, plain) and not (isinstance(value, bool) and kind is not bool)
    except TypeError:  # a type that no value can be compared with, such as a protocol
        return True


def _fields(kind: type) -> dict[str, Field[Any]]:
    return {item.name: item for item in fields(kind)}


def _read(item: Field[Any], kind: Any, value: Any) -> Any:
    """A value of JSON or TOML as a field holds it; a table of nested options goes over the field's default."""
    if not isinstance(kind, type) or not issubclass(kind, Options) or isinstance(value, kind):
        return _converted(kind, value)
    if not isinstance(value, Mapping):
        raise TypeError(f"expected a table [{item.name}], got {value!r}")
    default: Any = item.default_factory() if callable(item.default_factory) else item.default
    try:
        return kind.from_dict({**default.to_dict(), **value})
    except (TypeError, ValueError) as error:
        raise type(error)(f"[{item.name}] {error}") from error


def _converted(kind: Any, value: Any) -> Any:
    if isinstance(kind, UnionType) or get_origin(kind) is Union:
        if value == "none" and NoneType in get_args(kind):
            return None
        kind = next((one for one in get_args(kind) if one is not NoneType), kind)
    if get_origin(kind) is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(_converted(get_args(kind)[0], item) for item in items)
    if isinstance(kind, type) and issubclass(kind, PurePath) and isinstance(value, str):
        return kind(value)
    return float(value) if kind is float and isinstance(value, int) and not isinstance(value, bool) else value


def _plain(value: Any) -> Any:
    """A value as JSON has it; what JSON does not know, such as a function, stays the same object."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, PurePath):
        return str(value)
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
