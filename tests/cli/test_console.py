import pytest

from spit.cli import console
from spit.cli.console import waiting


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "PATIENCE", 0)
    with waiting("Starting", None) as say:
        say(done=1)
        say("Looking", 2, 5)
    assert capsys.readouterr().err == "spit: Starting\nspit: Looking, 2 of 5\n"


def test_not_more_than_one_in_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting("Starting", 3) as say:
        say(done=1)
    assert capsys.readouterr().err == ""
