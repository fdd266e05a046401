"""Options declared once: groups, tokenizers, and what typer makes of them."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args

import pytest
from typer.main import get_command
from typer.models import OptionInfo

import spit
from spit.cli.app import app
from spit.cli.options import Models, Running, TokenizerChoice, command, tokenizer_choice
from spit.config import ModelConfig
from spit.options import Options, option
from spit.tokenizers import PatchTokenizer, SuperpixelTokenizer, VoronoiTokenizer

Choice = tokenizer_choice()


def test_the_default_is_the_librarys() -> None:
    assert Choice().build() == SuperpixelTokenizer()
    assert Choice(tokenizer="patch").build() == PatchTokenizer()
    assert Choice(tokenizer="voronoi").build() == VoronoiTokenizer()
    assert not Choice().given


def test_every_option_arrives() -> None:
    options: dict[str, Any] = {"levels": 3, "compactness": 0.1, "merge_threshold": 0.2, "max_tokens": 50, "refine": 1,
                               "features": "saturated", "similarity": "euclidean", "self_loop": "none"}
    assert Choice(**options).build() == SuperpixelTokenizer(**options)
    assert Choice(tokenizer="patch", patch_size=8).build() == PatchTokenizer(8)
    assert Choice(tokenizer="voronoi", cells=9, seed=4).build() == VoronoiTokenizer(9, seed=4)


def test_zero_is_an_option_like_any_other() -> None:
    with pytest.raises(ValueError, match="levels of at least 1"):
        Choice(levels=0).build()


def test_help_says_whose_defaults_it_shows() -> None:
    told = next(item.metadata["option"].help for item in fields(Choice) if item.name == "tokenizer")
    assert "options left out keep the model's values; defaults shown here are those of another tokenizer" in told


def test_a_models_own_options_are_the_defaults() -> None:
    config = ModelConfig(tokenizer="patch", tokenizer_options={"size": 8})
    assert Choice().build(config) == PatchTokenizer(8)
    assert Choice(patch_size=4).build(config) == PatchTokenizer(4)
    assert Choice(tokenizer="superpixel").build(config) == SuperpixelTokenizer()


@pytest.mark.parametrize(("options", "told"), [
    ({"patch_size": 8}, "--patch-size belongs to --tokenizer patch, not to superpixel"),
    ({"tokenizer": "patch", "levels": 2}, "--levels belongs to --tokenizer superpixel, not to patch"),
    ({"tokenizer": "patch", "seed": 0}, "--seed belongs to --tokenizer voronoi, not to patch"),
    ({"tokenizer": "pach"}, "did you mean 'patch'"),
    ({"compactness": 2.0}, "expected compactness of at most 1, got 2.0; method='tree' takes more"),
    ({"compactness": -1.0}, "expected --compactness of at least 0"),
    ({"tokenizer": "patch", "patch_size": 0}, "expected --patch-size of at least 1, got 0"),
    ({"max_tokens": 0}, "expected --max-tokens of at least 1"),
    ({"self_loop": "clip"}, "expected --self-loop to be one of clipped, .* did you mean 'clipped'"),
])
def test_refusals(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Choice(**options).build()


@pytest.mark.usefixtures("restored_parts")
def test_a_registered_tokenizer_has_its_options() -> None:
    @dataclass(frozen=True)
    class Strips(spit.Tokenizer):
        strips: int = option(3, "Number of strips", least=1)
        wide: int | None = None
        weights: dict[str, int] = field(default_factory=dict)
        order: Literal[1, 2] = 1

        def partition(self, block: Any) -> spit.Partition:
            raise NotImplementedError

    spit.register_tokenizer("strips", Strips)
    assert tokenizer_choice()(tokenizer="strips", strips=5, wide=2).build() == Strips(5, 2)
    assert not {"weights", "order"} & {item.name for item in fields(tokenizer_choice())}  # only in Python and recipes


@dataclass(frozen=True)
class Rows(spit.Tokenizer):
    """Fields with the names of options that commands have, and of another tokenizer's with another type."""

    size: int = option(16, "Height of a row", least=1)
    device: str = "cpu"
    json: bool = False
    given: int = 1
    tokenizer: str = "rows"
    levels: str = "two"
    keyword: int = option(3, "Python's own word", flag="lambda")
    seed: int = 0
    count: int = 2
    table: Path | None = None

    def partition(self, block: Any) -> spit.Partition:
        raise NotImplementedError


@pytest.mark.usefixtures("restored_parts")
def test_a_tokenizers_option_that_clashes_has_its_name_before_it() -> None:
    @dataclass(frozen=True)
    class Counting(Options):
        count: int = option(1, "How many")

    def verb(top: int, models: Models, tokenizer: TokenizerChoice, counting: Counting, running: Running) -> Any:
        return tokenizer, counting.count

    spit.register_tokenizer("rows", Rows)
    run = command(verb)
    parameters = inspect.signature(run).parameters
    own = {name for name in parameters if name.startswith("rows_")}
    assert own == {f"rows_{name}" for name in ("size", "device", "json", "given", "tokenizer", "levels", "lambda",
                                               "count")}
    values = {name: parameter.default for name, parameter in parameters.items()}
    chosen, count = run(**values | {"tokenizer": "rows", "rows_size": 4, "rows_lambda": 5, "table": Path("a.txt")})
    assert chosen.build() == Rows(size=4, keyword=5, table=Path("a.txt"))
    assert count == 1
    with pytest.raises(ValueError, match="--rows-size belongs to --tokenizer rows, not to superpixel"):
        run(**values | {"rows_size": 4})[0].build()
    assert tokenizer_choice()(tokenizer="rows", rows_size=4, count=5).build() == Rows(size=4, count=5)


def test_groups_become_options_of_their_own() -> None:
    seen: list[Any] = []

    @dataclass(frozen=True)
    class Counting(Options):
        count: int = option(1, "How many", least=1)

    def verb(tokenizer: TokenizerChoice, counting: Counting) -> None:
        seen.append((tokenizer, counting))

    run = command(verb)
    parameters = inspect.signature(run).parameters
    assert "tokenizer" in parameters, "the group's own field of that name"
    assert {"levels", "seed", "count"} <= set(parameters)
    run(**{name: None for name in parameters} | {"levels": 2, "count": 3})
    assert (seen[0][0].given, seen[0][1]) == ({"levels": 2}, Counting(3))


def test_several_models_where_one_is_expected() -> None:
    with pytest.raises(ValueError, match="expected one --model, got a, b"):
        Models(model=("a", "b")).load_one("cpu")
    with pytest.raises(ValueError, match="each --model once"):
        Models(model=("a,a",)).load("cpu")


def test_devices() -> None:
    assert Running("cpu").place == "cpu"
    with pytest.raises(ValueError, match="cpu, cuda or auto"):
        _ = Running("tpu").place


def options() -> Iterator[tuple[str, str, inspect.Parameter]]:
    """Every option of every command: the command, the flag, and the parameter as typer reads it."""
    for group in (app, *(one.typer_instance for one in app.registered_groups)):
        for verb in group.registered_commands:
            for parameter in inspect.signature(verb.callback).parameters.values():
                told = get_args(parameter.annotation)[1]
                if isinstance(told, OptionInfo):
                    decls = (told.default, *(told.param_decls or ()))  # in Annotated the first one is the default
                    flag = next(flag for flag in decls if isinstance(flag, str) and flag.startswith("--"))
                    yield verb.callback.__name__, flag.partition("/")[0], parameter


def test_one_word_has_one_meaning() -> None:
    """The same flag has the same type and the same help in every verb; only defaults may differ.

    --method alone is the verb's own: a method of explaining, of segmenting, or of either in batch; and ``export``
    writes one file, in a precision of its own. ``batch`` continues its --output; ``convert`` has the --tokenizer of a
    checkpoint of the release, and ``classification`` and ``swap`` compare several, each with its options.
    """
    meanings: dict[str, dict[tuple[str, str], list[str]]] = {}
    for verb, flag, parameter in options():
        kind, told = get_args(parameter.annotation)
        plain = get_args(kind)[0] if NoneType in get_args(kind) else kind
        said = (str(plain), re.split(r"\(default|  \[", told.help)[0])
        meanings.setdefault(flag, {}).setdefault(said, []).append(verb)
    assert len(meanings) > 40
    for flag, count in {"--method": 3, "--output": 3, "--precision": 2, "--tokenizer": 3}.items():
        assert len(meanings.pop(flag)) == count
    assert {flag: found for flag, found in meanings.items() if len(found) > 1} == {}


def test_every_verb_takes_device_and_json() -> None:
    flags: dict[str, dict[str, Any]] = {}
    for verb, flag, parameter in options():
        flags.setdefault(verb, {})[flag] = parameter.default
    assert len(flags) >= 16
    for verb, own in flags.items():
        assert own["--json"] is False, verb
        on_cpu = verb in ("superpixels", "convert", "export", "doctor")
        assert on_cpu or own["--device"] == "auto", verb


def commands(parent: Any, name: str = "spit") -> Iterator[tuple[str, Any]]:
    """Every command as typer runs it, with its name."""
    for own, one in getattr(parent, "commands", {}).items():
        yield f"{name} {own}", one
        yield from commands(one, f"{name} {own}")


def test_help_says_default() -> None:
    told = 0
    for name, one in commands(get_command(app)):
        context = one.make_context(name, [], resilient_parsing=True)
        for parameter in one.params:
            if parameter.param_type_name == "option" and parameter.default not in (None, False, [], ()):
                _, text = parameter.get_help_record(context)
                assert text.count("default: ") == 1, (name, parameter.name, text)
                told += 1
    assert told > 50
