import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import spit as library
from spit.cli import main
from spit.cli.app import app

VERBS = ("demo", "tokenize", "classify")


def test_help_names_every_verb() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert all(verb in result.output for verb in VERBS)


@pytest.mark.parametrize(("arguments", "told"), [
    (["tokenise", "a.png"], "Did you mean 'tokenize'?"),
    (["classify", "nowhere.png", "--top", "3"], "nowhere.png: expected an image file or a folder, but no such path"),
    (["classify", "https://example.org/a.png"], "https://example.org/a.png: expected an image file or a folder, got a "
                                                "URL, which spit does not read; download the file first"),
    (["--version"], library.__version__),
])
def test_what_needs_no_torch_does_not_wait_for_it(arguments: list[str], told: str) -> None:
    program = f"import sys; from spit.cli import main; main({arguments!r}); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert told in done.stdout + done.stderr
    assert done.returncode == 0


def test_a_group_without_a_verb_prints_its_help(spit: Callable[..., Any]) -> None:
    asked, bare = spit("evaluate", "--help"), spit("evaluate")
    assert (bare.code, bare.err) == (0, "")
    assert bare.out == asked.out


@pytest.mark.parametrize(("verb", "policy"), [("train", "PASSIVE"), ("retrofit", "PASSIVE"), ("doctor", "None")])
def test_threads_of_training_do_not_spin(verb: str, policy: str, tmp_path: Path) -> None:
    """Asked of a plugin, which is imported last before the verb runs."""
    (tmp_path / "asks.py").write_text("import os\nraise ImportError(str(os.environ.get('OMP_WAIT_POLICY')))\n")
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    done = subprocess.run([sys.executable, "-m", "spit.cli", "--plugin", "asks", verb], capture_output=True, text=True,
                          check=False, cwd=tmp_path, env=environment)
    assert done.stderr == f"spit: plugin asks could not be imported: ImportError: {policy}\n"


def names() -> list[list[str]]:
    """Every command: verbs, and the sub-verbs of groups."""
    verbs: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    return [[verb] for verb in verbs] + [[verb, name] for verb, group in verbs.items()
                                        for name in getattr(group, "commands", ())]


def test_help_imports_no_torch() -> None:
    program = (f"import sys; from spit.cli import main\nfor name in ([], *{names()}):\n"
               "    assert main([*name, '--help']) == 0, name\n    assert 'torch' not in sys.modules, name\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_device_and_json(verb: str) -> None:
    result = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert all(option in result.output for option in ("--device", "--json", "--help"))


def test_help_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, spit: Callable[..., Any]) -> None:
    for columns, most in (("80", 80), ("200", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        lines = spit("segment", "--help").out.splitlines()
        assert lines.index("Arguments:") < lines.index("Options:") < lines.index("Tokenizer:")
        assert max(map(len, lines)) <= most
        assert sum(len(line) > most - 10 for line in lines) > 15  # and the columns are used


def test_flags_have_no_value_in_the_help(monkeypatch: pytest.MonkeyPatch, spit: Callable[..., Any]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = spit("segment", "--help").out
    assert "--json   " in text
    assert "--clean / --no-clean   " in text
    assert "[default: on]" in text
    assert "--layer INT   " in text
    assert "<" not in text


@pytest.mark.parametrize(("verb", "told"), [
    ("tokenize", "skips images that are done with the same settings; --again repeats them"),
    ("explain", "skips images that are done with the same models, methods and settings; --again repeats them"),
    ("segment", "skips images that are done with the same model and settings; --again repeats them"),
    ("correspond", "replaces the picture"),
    ("batch", "of the same command does only the blocks that are not there"),
    ("train", "of the same command resumes one that was stopped or killed, and leaves one that has ended as it is"),
    ("retrofit", "of the same command resumes one that was stopped or killed, and leaves one that has ended as it is"),
    ("evaluate", "takes what is measured already from images.jsonl"),
])
def test_help_says_what_a_second_run_does(verb: str, told: str, spit: Callable[..., Any]) -> None:
    assert f"second run {told}" in " ".join(spit(verb, "--help").out.split())


def test_the_list_of_verbs_is_not_cut_short(spit: Callable[..., Any]) -> None:
    listed = spit("--help").out.partition("Commands:")[2]
    assert "demo.png" in listed
    assert "..." not in listed


def test_no_arguments_show_the_help(spit: Callable[..., Any]) -> None:
    result = spit()
    assert result.code == 0
    assert "tokenize" in result.out


def test_version(spit: Callable[..., Any]) -> None:
    assert spit("--version").out.strip() == library.__version__


@pytest.mark.parametrize(("arguments", "told"), [
    (["tokenise"], "tokenize"),
    (["tokenize"], "IMG"),
    (["tokenize", "--nonsense", "a.png"], "--nonsense"),
    (["tokenize", "--levels", "many", "a.png"], "--levels"),
    (["segment", "--tau", "many", "a.png"], "got 'many' (see spit segment --help)"),
    (["classify", "--top", "0", "a.png"], "--top"),
    (["tokenize", "nowhere.png"], "nowhere.png"),
    (["tokenize", "--max-pixels", "0", "a.png"], "--max-pixels"),
])
def test_bad_usage_is_one_line(arguments: list[str], told: str, spit: Callable[..., Any]) -> None:
    assert told in spit(*arguments).error


def test_without_typer_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    assert main(["--help"]) == 2
    assert capsys.readouterr().err == ("spit: the command line needs typer and rich; install the extra: "
                                       "pip install 'spit-vit[cli]' (in a clone: pip install -c constraints.txt "
                                       "-e '.[cli]')\n")


def test_only_a_plugin_that_fails_is_called_a_plugin(monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--plugin", "no_such_module", "--help"]) == 2
    assert ("plugin no_such_module could not be imported: ModuleNotFoundError: No module named 'no_such_module'"
            in capsys.readouterr().err)
    for given, advice in {"mine.py": "mine", "../mine": "mine", "..": "MODULE", "": "MODULE"}.items():
        assert main(["--plugin", given, "--help"]) == 2
        assert (f"expected the name of a module, got {given!r}; in the folder of the file, give --plugin {advice}"
                in capsys.readouterr().err)
    monkeypatch.setattr("spit.cli.tokenize.find_inputs", raising(ImportError("not a plugin's")))
    with pytest.raises(ImportError, match="not a plugin's"):
        main(["tokenize", "a.png"])


@pytest.mark.parametrize(("text", "told"), [
    ("x = 1\ny = 2\nz =\n", "SyntaxError: invalid syntax (broken.py, line 3)"),
    ("raise TypeError('cannot\\ninherit')\n", "TypeError: cannot inherit"),
    ("raise KeyError\n", "KeyError")])
def test_a_plugin_that_raises_is_one_line(text: str, told: str, spit: Callable[..., Any], tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert spit("--plugin", "broken", "--help").error == f"spit: plugin broken could not be imported: {told}\n"
    monkeypatch.setenv("SPIT_TRACEBACK", "1")
    with pytest.raises(library.SpitError, match="plugin broken"):
        main(["--plugin", "broken", "--help"])


def test_a_plugin_may_follow_the_verb(spit: Callable[..., Any], tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded_late.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "loaded_late", raising=False)
    for arguments in (["tokenize", "--plugin", "loaded_late", "--help"], ["tokenize", "--plugin=loaded_late", "--help"],
                      ["--plugin", "loaded_late", "tokenize", "--help"]):
        sys.modules.pop("loaded_late", None)
        assert spit(*arguments).code == 0
        assert "loaded_late" in sys.modules
    assert "after --plugin, got none" in spit("tokenize", "--plugin").error
    assert "--plugin" in spit("tokenize", "--", "--plugin").error  # here it is the name of a file


def raising(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(("error", "line"), [
    (OSError(errno.ENOSPC, "No space left on device", "/out/a.png"), "spit: /out/a.png: No space left on device\n"),
    (OSError(errno.EIO, "Input/output error"), "spit: Input/output error\n"),
    (library.SpitError("two\nlines"), "spit: two lines\n"),
    (ValueError(), "spit: ValueError\n"),
    (MemoryError(), "spit: not enough memory for an image of this size; give a smaller one\n"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory"),
     "spit: not enough memory for an image of this size; give a smaller one\n"),
])
def test_what_a_user_can_cause_is_one_line(error: Exception, line: str, monkeypatch: pytest.MonkeyPatch,
                                           spit: Callable[..., Any]) -> None:
    monkeypatch.setattr("spit.cli.tokenize.find_inputs", raising(error))
    assert spit("tokenize", "a.png").error == line


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spit.cli.tokenize.find_inputs", raising(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        main(["tokenize", "a.png"])


def test_the_traceback_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPIT_TRACEBACK", "1")
    with pytest.raises(library.ImageError):
        main(["tokenize", "nowhere.png"])


def test_an_interrupt_is_told_and_has_its_own_code(monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("spit.cli.tokenize.find_inputs", raising(KeyboardInterrupt()))
    assert main(["tokenize", "a.png"]) == 130
    assert capsys.readouterr().err == "spit: stopped\n"


def test_a_process_refuses_with_one_line(spit_process: Callable[..., Any], tmp_path: Path) -> None:
    fake = tmp_path / "fake.png"
    fake.write_text("no image")
    error = spit_process("tokenize", fake, "-o", tmp_path / "out").error
    assert str(fake) in error
    assert not (tmp_path / "out").exists()


def test_a_process_answers_on_an_ascii_terminal(spit_process: Callable[..., Any], photo: Callable[..., Path],
                                                tmp_path: Path) -> None:
    path = photo(tmp_path / "a.png")
    result = spit_process("demo", "--image", path, "-o", tmp_path, PYTHONIOENCODING="ascii")
    assert result.code == 0, result.err
    assert "48 ? 40" in result.out


@pytest.mark.parametrize("arguments", [("tokenize", "cat.jpg", "-o", ""), ("tokenize", "cat.jpg", "--output="),
                                       ("tokenize", "")])
def test_an_empty_argument_is_not_the_current_folder(arguments: tuple[str, ...], spit: Callable[..., Any]) -> None:
    assert "got an empty argument" in spit(*arguments).error
