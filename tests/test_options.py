import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Optional, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spit.options import Options, check_choice, declared, documented, option, refuse_unknown, same


@documented
@dataclass(frozen=True)
class Inner(Options):
    """Inner options.

    Example:
        >>> Inner()
    """

    rate: float = option(0.5, "Share of something.", least=0, below=1)
    steps: int | None = option(None, "How many (default: all)", least=1)


@dataclass(frozen=True)
class Outer(Options):
    kind: Literal["round", "square"] = option("round", "Shape")
    names: tuple[str, ...] = option((), "Names", choices=("a", "b"))
    pair: tuple[float, float] = option((0.1, 0.9), "Two numbers", above=0, most=1)
    count: int = option(3, "Count", least=1)
    flag: bool = option(False, "Flag")
    extra: Mapping[str, Any] = option(dict, "Anything")
    inner: Inner = option(Inner, "Nested")
    plain: object = None


@pytest.mark.parametrize(("values", "error", "message"), [
    ({"count": 0}, ValueError, "expected count of at least 1, got 0"),
    ({"count": 2.0}, TypeError, "expected count to be a whole number, got 2.0"),
    ({"flag": 1}, TypeError, "expected flag to be bool, got 1"),
    ({"kind": "oval"}, ValueError, "expected kind to be one of round, square, got 'oval'"),
    ({"kind": "squar"}, ValueError, "did you mean 'square'"),
    ({"kind": 3}, TypeError, "expected kind to be 'round' or 'square', got 3"),
    ({"names": ("a", "c")}, ValueError, "expected names to be one of a, b, got 'c'"),
    ({"names": ["a"]}, TypeError, "expected names to be tuple of str"),
    ({"pair": (0.5, 0.0)}, ValueError, "expected pair above 0, got 0.0"),
    ({"pair": (0.5, nan)}, ValueError, "got nan"),
    ({"pair": (0.5,)}, TypeError, "expected pair to be tuple of 2 float"),
    ({"extra": []}, TypeError, "expected extra to be Mapping"),
    ({"inner": {}}, TypeError, "expected inner to be Inner"),
])
def test_values_are_checked(values, error, message):
    with pytest.raises(error, match=message):
        Outer(**values)


class Speaks(Protocol):
    def speak(self) -> str: ...


@dataclass(frozen=True)
class Plain(Options):
    """Fields without option()."""

    cell: int = 16
    name: str = None  # type: ignore[assignment]  # a default need not have the type
    shape: Literal["round", "square"] = "round"
    order: Literal[1, 2] = 1
    sizes: tuple[int, ...] = (1, 2)
    anything: object = None
    speaker: Speaks | None = None
    share: float | None = None
    counts: list[int] = field(default_factory=list)
    pair: Optional[tuple[int, int]] = None  # noqa: UP045, as users may write it


@pytest.mark.parametrize(("values", "error", "message"), [
    ({"cell": "a"}, TypeError, "^expected cell to be a whole number, got 'a'$"),
    ({"name": 3}, TypeError, "expected name to be str, got 3"),
    ({"order": 3}, TypeError, "expected order to be 1 or 2, got 3"),
    ({"sizes": (1, "b")}, TypeError, "expected sizes to be tuple of int"),
    ({"share": "two"}, TypeError, "^expected share to be a number or None, got 'two'$"),
    ({"counts": 1}, TypeError, "^expected counts to be list, got 1$"),
])
def test_plain_fields_are_checked_by_their_type(values, error, message):
    with pytest.raises(error, match=message):
        Plain(**values)


def test_plain_fields_have_no_range_and_take_what_cannot_be_checked():
    assert Plain().name is None
    assert Plain(cell=0, order=2, anything=True, speaker=object()).cell == 0
    assert Plain.from_dict({"pair": [1, 2]}).pair == (1, 2)
    assert declared(Plain) == ()
    assert [item.name for item, _, _ in declared(Plain, plain=True)][:2] == ["cell", "name"]


def test_values_in_range_are_kept_as_they_are():
    assert Outer(count=1, pair=(1, 0.5), names=("b", "a"), plain={1}).pair == (1, 0.5)
    assert Inner(steps=None, rate=0).steps is None
    with pytest.raises(ValueError, match="rate below 1, got inf"):
        Inner(rate=inf)


@given(st.builds(Outer, names=st.lists(st.sampled_from("ab")).map(tuple), count=st.integers(1), flag=st.booleans(),
                 pair=st.tuples(*[st.floats(0.01, 1)] * 2), extra=st.dictionaries(st.text(), st.integers()),
                 inner=st.builds(Inner, rate=st.floats(0, 0.99), steps=st.none() | st.integers(1))))
def test_round_trip_through_json(options):
    assert Outer.from_dict(json.loads(json.dumps(options.to_dict()))) == options


def test_paths_are_text_outside():
    @dataclass(frozen=True)
    class Files(Options):
        table: Path = Path("a.txt")
        other: Path | None = None
        several: tuple[Path, ...] = ()
        either: str | Path | None = None

    files = Files(Path("b/c.txt"), Path("d"), (Path("e"), Path("f")), Path("g"))
    values = json.loads(json.dumps(files.to_dict()))
    assert values == {"table": "b/c.txt", "other": "d", "several": ["e", "f"], "either": "g"}
    assert Files.from_dict(values) == files.replace(either="g")
    assert Files.from_dict({"other": None}) == Files.from_dict(Files().to_dict()) == Files()
    assert Files.from_dict({"table": Path("b")}).table == Path("b")
    with pytest.raises(TypeError, match="expected table to be Path, got 3"):
        Files.from_dict({"table": 3})


def test_what_json_does_not_know_stays_the_same_object():
    lock, values = Lock(), {"deep": [1]}
    found = Outer(plain=lock, extra=values).to_dict()
    assert found["plain"] is lock
    found["extra"]["deep"].append(2)
    assert values == {"deep": [1]}


def test_what_toml_writes():
    options = Outer.from_dict({"names": "a", "pair": [1, 0.5], "inner": {"steps": "none"}})
    assert (options.names, options.pair, options.inner.steps) == (("a",), (1.0, 0.5), None)
    assert isinstance(options.pair[0], float)
    assert Outer.from_dict({"inner": {"rate": 0.1}}).inner == Outer.from_dict({"inner": Inner(rate=0.1)}).inner


@pytest.mark.parametrize(("values", "error", "message"), [
    ({"cuont": 3}, ValueError, "unknown option 'cuont'; did you mean 'count'"),
    ({"inner": {"rat": 3}}, ValueError, r"\[inner\] unknown option 'rat'; did you mean 'rate'"),
    ({"inner": {"rate": 3}}, ValueError, r"\[inner\] expected rate below 1, got 3"),
    ({"inner": 3}, TypeError, r"expected a table \[inner\], got 3"),
])
def test_tables_are_checked(values, error, message):
    with pytest.raises(error, match=message):
        Outer.from_dict(values)


def test_replace():
    assert Outer().replace(count=5).count == 5
    with pytest.raises(ValueError, match="unknown option 'cont'"):
        Outer().replace(cont=5)
    with pytest.raises(ValueError, match="count of at least 1"):
        Outer().replace(count=0)


def test_docstring_lists_the_options_before_the_example():
    assert Inner.__doc__ == """Inner options.

    Args:
        rate: Share of something (default: 0.5).
        steps: How many (default: all).

    Example:
        >>> Inner()
    """


def test_an_option_of_another_dataclass_has_its_help_and_range_and_its_own_default():
    @dataclass(frozen=True)
    class Borrowed(Options):
        rate: float = same(Inner, "rate", 0.25)

    assert Borrowed().rate == 0.25
    [(_, _, spec)] = declared(Borrowed)
    assert spec.help == "Share of something."
    with pytest.raises(ValueError, match="rate below 1"):
        Borrowed(rate=2.0)


def test_choices_and_names():
    with pytest.raises(ValueError, match=r"^expected size to be one of big, small, got 'x'; ask$"):
        check_choice("size", "x", ("big", "small"), hint="ask")
    with pytest.raises(ValueError, match=r"'learning_rate'; known are rate, steps$"):
        Inner.from_dict({"learning_rate": 1})
    with pytest.raises(ValueError, match=r"^unknown key 'x'; it has none$"):
        refuse_unknown(["x"], [], "key")
